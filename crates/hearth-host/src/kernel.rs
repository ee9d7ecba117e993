//! What the running kernel is and can do.

use crate::Error;
use memchr::memmem;
use memmap2::MmapOptions;
use std::fs::{self, File};
use std::path::Path;

const SCHED_EXT: &str = "/sys/kernel/sched_ext";
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// What `uname -r` prints.
pub fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Major and minor version of a kernel release such as `6.12.3-amd64`.
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Whether the kernel can load a sched_ext scheduler, and if not, why.
pub fn check_sched_ext() -> Result<(), Error> {
    let release = release();
    let reason = if !Path::new(SCHED_EXT).is_dir() {
        match version(&release) {
            Some(version) if version < (6, 12) => "it is older than 6.12".to_owned(),
            _ => "it was built without CONFIG_SCHED_CLASS_EXT".to_owned(),
        }
    } else if !Path::new(TYPES).exists() {
        "it was built without CONFIG_DEBUG_INFO_BTF".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::NoSchedExt { release, reason })
}

/// State of sched_ext: `disabled`, `enabling`, `enabled`, `disabling`; `None` without sched_ext.
pub fn sched_ext_state() -> Option<String> {
    read(&format!("{SCHED_EXT}/state"))
}

/// The name of the sched_ext scheduler that is loaded.
pub fn loaded_scheduler() -> Option<String> {
    read(&format!("{SCHED_EXT}/root/ops")).filter(|name| !name.is_empty())
}

/// Whether the kernel's types know a name.
pub fn has(name: &str) -> bool {
    let finds = |types: &[u8]| memmem::find(types, name.as_bytes()).is_some();
    let Ok(file) = File::open(TYPES) else { return false };
    // SAFETY: the kernel never changes the file.
    match unsafe { MmapOptions::new().map_copy_read_only(&file) } {
        Ok(types) => finds(&types),
        // Until 6.15 it could only be read, a page at a time.
        Err(_) => fs::read(TYPES).is_ok_and(|types| finds(&types)),
    }
}

/// Length of the timer's tick.
pub fn tick_ns() -> u64 {
    // The coarse clock moves once a tick, and says so.
    let tick = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    tick.tv_sec as u64 * 1_000_000_000 + tick.tv_nsec as u64
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_releases() {
        assert_eq!(version("6.12.3-amd64"), Some((6, 12)));
        assert_eq!(version("7.3.4+deb13-cloud-amd64"), Some((7, 3)));
        assert_eq!(version("6.1"), Some((6, 1)));
        assert_eq!(version("linux"), None);
    }
}
