//! Memory that is needed for a moment only.

use procfs::process::{MMPermissions, MMapPath, MemoryMap, Process};

/// Loading parses all of the kernel's types, runs code and reads constants, all of which nothing needs
/// afterwards; what that took is given back to the system.
pub(crate) fn give_back() {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> i32;
    }
    // SAFETY: takes a number, returns one, and touches only free memory.
    unsafe {
        malloc_trim(0);
    }
    let maps = Process::myself().and_then(|own| own.smaps());
    for map in maps.into_iter().flatten().filter(is_as_in_its_file) {
        let (start, end) = map.address;
        // SAFETY: the pages are as they are in their file, from where they come back when they are used.
        unsafe {
            libc::madvise(start as *mut libc::c_void, (end - start) as usize, libc::MADV_DONTNEED);
        }
    }
}

/// Whether a mapping shows a file, has no page of its own, and gets none. Not one that is shared: what a
/// BPF map shows of itself is called a file, too, and does not come back.
fn is_as_in_its_file(map: &MemoryMap) -> bool {
    let has_none = |of: &str| map.extension.map.get(of) == Some(&0);
    map.perms.contains(MMPermissions::PRIVATE)
        && !map.perms.contains(MMPermissions::WRITE)
        && has_none("Anonymous")
        && has_none("Swap")
        && matches!(map.pathname, MMapPath::Path(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    use std::fs::File;
    use std::ptr;

    #[test]
    fn what_is_shared_or_may_be_written_to_stays() {
        let program = File::open("/proc/self/exe").unwrap();
        for (protection, flags, is_given_back) in [
            (ProtFlags::READ, MapFlags::PRIVATE, true),
            (ProtFlags::READ, MapFlags::SHARED, false),
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE, false),
        ] {
            // SAFETY: the kernel chooses where, and nothing else uses it.
            let start = unsafe { mmap(ptr::null_mut(), 4096, protection, flags, &program, 0) }.unwrap();
            let maps = Process::myself().unwrap().smaps().unwrap();
            let map = maps.iter().find(|map| map.address.0 == start as u64);
            assert_eq!(map.map(is_as_in_its_file), Some(is_given_back), "{protection:?} {flags:?}");
            // SAFETY: as above.
            unsafe { munmap(start, 4096) }.unwrap();
        }
    }
}
