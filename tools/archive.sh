# Shell functions for tools that take packages from the Debian archive and unpack them into a cache,
# apart from the system's. To be sourced, by a shell that has defined fail.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/hearth

codename=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME:-}") || codename=

# Only here are the suites and versions known that these tools ask for.
is_debian_12() {
	[ "$codename" = bookworm ] && [ "$(uname -m)" = x86_64 ]
}

sudo=
need_root() {
	[ "$(id -u)" -ne 0 ] || return 0
	command -v sudo >/dev/null 2>&1 || fail "please run $1 as root."
	sudo=sudo
}

# A folder that goes when the shell does, and the archive's address, from the system's own package
# sources, whatever form they have.
open_archive() {
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	archive=$(apt-get --print-uris -o Dir::State::lists="$work/none" update 2>/dev/null |
		sed -n "s|^'\([^']*\)/dists/bookworm/InRelease'.*|\1|p" | head -n 1)
	[ -n "$archive" ] ||
		fail "apt's package sources do not name Debian bookworm; see /etc/apt/sources.list.d."
}

# private NAME SUITE...: an apt of its own that knows these suites, of kind $kind (deb or deb-src);
# options are left in $apt
kind=deb
private() {
	state=$work/$1
	shift
	mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
	for suite in "$@"; do
		echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive $suite main"
	done >"$state/sources.list"
	apt="-o Dir::Etc::sourcelist=$state/sources.list -o Dir::Etc::sourceparts=/dev/null
		-o Dir::State::lists=$state/lists -o Dir::Cache=$state/cache -o APT::Sandbox::User=root"
	# shellcheck disable=SC2086
	$sudo apt-get $apt -o APT::Update::Error-Mode=any update -qq >"$work/log" 2>&1 ||
		fail "cannot read $* from the Debian archive: $(grep '^[EW]:' "$work/log" | head -n 1)"
}

# offers PACKAGE VERSION: whether the suites of the last `private` have this version
# shellcheck disable=SC2086
offers() {
	apt-cache $apt madison "$1" 2>/dev/null | grep -qF " $2 "
}

# download FOLDER PACKAGE[=VERSION]...: the files themselves, whatever the system has installed
# shellcheck disable=SC2086
download() {
	folder=$1
	shift
	(cd "$folder" && apt-get $apt -o Dir::State::status=/dev/null download -qq "$@" >"$work/log" 2>&1) ||
		fail "cannot download $*: $(grep '^E:' "$work/log" | head -n 1)"
}

# check_sum FILE SHA256
check_sum() {
	echo "$2  $1" | sha256sum --check --status && return
	rm -f "$1"
	fail "$(basename "$1") has another SHA256 than the one in this script; try again."
}
