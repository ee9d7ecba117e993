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

pub(crate) fn kernel_image(kernel: Kernel) -> PathBuf {
    cache().join(match kernel {
        Kernel::Pinned => "vmlinuz-pinned",
        Kernel::Second => "vmlinuz-second",
        Kernel::Floor => "vmlinuz-floor",
        Kernel::Plain => "vmlinuz-plain",
    })
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
