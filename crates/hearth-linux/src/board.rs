//! The memory of a scheduler that the kernel has loaded, mapped a second time for plans.

use crate::Error;
use crate::object::Layout;
use hearth_abi::{self as seam, Globals};
use hearth_machine::host::HostTopology;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

/// Where plans are published to such a scheduler.
pub(crate) type Board = seam::Board<Globals<Mapping>>;

/// Where plans for the scheduler that has this memory are published.
///
/// # Errors
/// What the system refuses.
pub(crate) fn board(data: BorrowedFd<'_>, layout: Layout, host: &HostTopology) -> Result<Board, Error> {
    let mapping = Mapping::of(data, layout.size)?;
    let data = mapping.memory;
    // SAFETY: inside the mapping, which is shared memory, and of these types, as the build has compared.
    let globals = unsafe {
        Globals::new(
            data.add(layout.published).cast().as_ptr(),
            data.add(layout.shapes).cast().as_ptr(),
            data.add(layout.plans).cast().as_ptr(),
            data.add(layout.cells).cast().as_ptr(),
            mapping,
        )
    };
    Ok(seam::Board::new(globals, host.domains()))
}

/// The scheduler's memory, mapped.
pub(crate) struct Mapping {
    memory: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is this struct's own.
unsafe impl Send for Mapping {}

impl Mapping {
    fn of(data: BorrowedFd<'_>, bytes: usize) -> Result<Self, Error> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, of which nothing else knows.
        let memory = unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, data, 0) };
        let refused =
            |error: rustix::io::Errno| Error::refused("map plans", std::io::Error::from(error).into());
        let memory = NonNull::new(memory.map_err(refused)?.cast());
        memory.map(|memory| Self { memory, bytes }).ok_or(Error::Incomplete { section: "data" })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this struct's own. What cannot be unmapped stays until the process ends.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}
