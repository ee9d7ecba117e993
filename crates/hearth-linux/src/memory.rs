//! Memory that is needed for a moment only.

use procfs::process::{MMPermissions, MMapPath};

/// Loading parses all of the kernel's types, and runs code, and reads constants, that nothing needs afterwards; what that
/// took is given back to the system.
pub(crate) fn give_back() {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> i32;
    }
    // SAFETY: takes a number, returns one, and touches only free memory.
    unsafe {
        malloc_trim(0);
    }
    let maps = procfs::process::Process::myself().and_then(|own| own.smaps());
    for map in maps.into_iter().flatten() {
        let is_written_to = map.perms.contains(MMPermissions::WRITE)
            || map.extension.map.get("Anonymous").is_none_or(|bytes| *bytes > 0);
        if let (false, MMapPath::Path(_), (start, end)) = (is_written_to, &map.pathname, map.address) {
            // SAFETY: pages of a file of which none was ever written to; they come back from it when they are
            // used.
            unsafe {
                libc::madvise(start as *mut libc::c_void, (end - start) as usize, libc::MADV_DONTNEED);
            }
        }
    }
}
