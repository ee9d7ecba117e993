# Shell functions of the tests of page migration.

# Memory of node 1, used from node 0: name, MiB, CPU, what.
remote() {
	tasks pages $2 4 $3 200000 $4 >/tmp/$1 &
	echo $! >/tmp/$1.pid
}
last() {
	tail -n 1 /tmp/$1
}
# Waits until so many percent are local, for at most so many seconds.
await_local() {
	for try in $(seq $3); do
		[ "$(local_of $1)" -ge $2 ] 2>/dev/null && break
		sleep 1
	done
}
end() {
	kill -9 $(cat /tmp/$1.pid)
}
policy() {
	cat >/tmp/$1.toml <<-END
		name = "$1"
		description = "a test"
		rule = "consecutive"
		misses = "tlb"
		threshold = 4
		[freeze]
		on_move = true
		on_local = true
		defrost = "10 s"
		[quota]
		bandwidth = "$2"
	END
}
local_of() {
	last $1 | sed 's/.*local=\([0-9]*\).*/\1/'
}
damon() {
	for file in /sys/kernel/mm/damon/admin/kdamonds/*/contexts/0/targets/nr_targets; do
		[ -e $file ] && echo targets=$(cat $file)
	done
	echo kdamonds=$(cat /sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds)
}
threads() {
	echo threads=$(ls /proc/$(cat /run/hearth/lock)/task | wc -l)
}
