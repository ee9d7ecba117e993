//! Memory that is needed for a moment only.

use procfs::process::{MMPermissions, MMapPath};

/// Loading parses all of the kernel's types, and runs code that nothing needs afterwards; what that
/// took is given back to the system.
pub(crate) fn give_back() {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> i32;
    }
    // SAFETY: takes a number, returns one, and touches only free memory.
    unsafe {
        malloc_trim(0);
    }
    let maps = procfs::process::Process::myself().and_then(|own| own.maps());
    for map in maps.into_iter().flatten() {
        let is_code = map.perms.contains(MMPermissions::EXECUTE) && !map.perms.contains(MMPermissions::WRITE);
        if let (true, MMapPath::Path(_), (start, end)) = (is_code, &map.pathname, map.address) {
            // SAFETY: pages of a file that are never written to; they come back from it when they are run.
            unsafe {
                libc::madvise(start as *mut libc::c_void, (end - start) as usize, libc::MADV_DONTNEED);
            }
        }
    }
}
