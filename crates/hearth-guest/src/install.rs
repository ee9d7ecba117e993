//! What `tools/install-guest` installs, and where.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::{GuestError, Kernel};

fn cache() -> PathBuf {
    let base = env::var_os("XDG_CACHE_HOME")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .unwrap_or_else(|| PathBuf::from("/root/.cache"));
    base.join("hearth/guest")
}

/// Where the states of booted guests are.
pub(crate) fn states() -> PathBuf {
    cache().join("states")
}

pub(crate) fn kernel_image(kernel: Kernel) -> PathBuf {
    cache().join(match kernel {
        Kernel::Pinned => "vmlinuz-pinned",
        Kernel::Second => "vmlinuz-second",
        Kernel::Floor => "vmlinuz-floor",
        Kernel::Plain => "vmlinuz-plain",
    })
}

/// The oldest QEMU whose guests are known to run.
const QEMU_MAJOR: u32 = 10;
const QEMU: &str = "qemu-system-x86_64";

/// Whether this host has what one guest needs, with tools/install-guest at hand or not: QEMU, busybox
/// and the kernel.
///
/// # Errors
/// What is missing or too old.
pub fn ready(kernel: Kernel) -> Result<(), GuestError> {
    let text = qemu_version()?;
    let missing = |what: String| Err(GuestError::NotInstalled(format!("{what}: run tools/install-guest")));
    if major(&text).is_none_or(|major| major < QEMU_MAJOR) {
        let said = text.lines().next().unwrap_or_default();
        return missing(format!("{QEMU} is too old, {QEMU_MAJOR} is the least; it says {said:?}"));
    }
    match [PathBuf::from(crate::image::BUSYBOX), kernel_image(kernel)].iter().find(|path| !path.is_file()) {
        Some(path) => missing(format!("{} is missing", path.display())),
        None => Ok(()),
    }
}

/// What QEMU says of its version.
pub(crate) fn qemu_version() -> Result<String, GuestError> {
    let output = Command::new(QEMU).arg("--version").output();
    let output = output.map_err(|source| GuestError::Start { program: QEMU, source })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Of `QEMU emulator version 10.0.2 (Debian ...)`.
fn major(version: &str) -> Option<u32> {
    let (_, number) = version.split_once("version ")?;
    number.split('.').next()?.parse().ok()
}

/// The pinned kernel's configuration, if `tools/install-guest config` has got it.
pub fn kernel_config() -> Option<PathBuf> {
    Some(cache().join("config-pinned")).filter(|path| path.is_file())
}

/// The folder that stress-ng and its libraries were unpacked into.
pub fn stress_root() -> PathBuf {
    cache().join("stress")
}

/// Whether a guest can boot here; if not, the error says what is missing, for a test to print
/// before it is skipped.
pub fn available() -> Result<(), GuestError> {
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/install-guest");
    let check = Command::new(tool)
        .arg("--check")
        .output()
        .map_err(|source| GuestError::Start { program: "tools/install-guest", source })?;
    if check.status.success() {
        return Ok(());
    }
    Err(GuestError::NotInstalled(String::from_utf8_lossy(&check.stderr).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qemu_says_how_old_it_is() {
        assert_eq!(major("QEMU emulator version 10.0.2 (Debian 1:10.0.2)\nCopyright"), Some(10));
        assert_eq!(major("QEMU emulator version 7.2.17"), Some(7));
        assert_eq!(major("something else"), None);
    }
}
