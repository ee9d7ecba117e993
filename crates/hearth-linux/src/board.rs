//! The memory of a scheduler that the kernel has loaded, mapped a second time for plans.

use crate::Error;
use crate::scheduler::bpf::types::bss;
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
pub(crate) fn board(data: BorrowedFd<'_>, host: &HostTopology) -> Result<Board, Error> {
    let mapping = Mapping::of(data)?;
    let data = mapping.0.as_ptr();
    // SAFETY: inside the mapping, which is shared memory, and the same types, as the build has compared.
    let globals = unsafe {
        Globals::new(
            &raw mut (*data).published,
            (&raw mut (*data).shapes).cast(),
            (&raw mut (*data).plans).cast(),
            (&raw const (*data).cell_ctxs).cast(),
            mapping,
        )
    };
    Ok(seam::Board::new(globals, host.domains()))
}

/// The scheduler's memory, mapped.
pub(crate) struct Mapping(NonNull<bss>);

// SAFETY: the mapping is this struct's own.
unsafe impl Send for Mapping {}

impl Mapping {
    fn of(data: BorrowedFd<'_>) -> Result<Self, Error> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, of which nothing else knows.
        let memory = unsafe { mmap(ptr::null_mut(), size_of::<bss>(), access, MapFlags::SHARED, data, 0) };
        let refused =
            |error: rustix::io::Errno| Error::refused("map plans", std::io::Error::from(error).into());
        let memory = NonNull::new(memory.map_err(refused)?.cast());
        memory.map(Self).ok_or(Error::Incomplete { section: "data" })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this struct's own. What cannot be unmapped stays until the process ends.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), size_of::<bss>()) };
    }
}
