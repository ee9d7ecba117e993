//! The memory of a scheduler that the kernel has loaded, mapped a second time for plans.

use crate::scheduler::bpf::types::bss;
use crate::{Error, shape};
use hearth_machine::host::HostTopology;
use hearth_seam::{self as seam, CELLS, Memory, PLANS, PlanBuffer, SHAPES, Shape};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

/// Where plans are published to such a scheduler.
pub(crate) type Board = seam::Board<Mapped>;

/// Where plans for the scheduler that has this memory are published.
///
/// # Errors
/// What the system refuses.
pub(crate) fn board(data: BorrowedFd<'_>, host: &HostTopology) -> Result<Board, Error> {
    Ok(seam::Board::new(Mapped::map(data)?, shape::domains(host)))
}

/// The scheduler's memory. Callbacks read and write it meanwhile, so nothing here is a reference to it.
pub(crate) struct Mapped(NonNull<bss>);

// SAFETY: the mapping is this struct's own, and the memory is written by one thread of this process only.
unsafe impl Send for Mapped {}

impl Mapped {
    fn map(data: BorrowedFd<'_>) -> Result<Self, Error> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, of which nothing else knows.
        let memory = unsafe { mmap(ptr::null_mut(), size_of::<bss>(), access, MapFlags::SHARED, data, 0) };
        let refused =
            |error: rustix::io::Errno| Error::refused("map plans", std::io::Error::from(error).into());
        let memory = NonNull::new(memory.map_err(refused)?.cast());
        memory.map(Self).ok_or(Error::Incomplete { section: "data" })
    }

    fn plan(&self, index: usize) -> *mut PlanBuffer {
        // SAFETY: inside the memory; the same struct, as the build has compared.
        unsafe { (&raw mut (*self.0.as_ptr()).plans[index % PLANS]).cast() }
    }
}

impl Memory for Mapped {
    fn published(&self) -> &AtomicU64 {
        // SAFETY: aligned, inside the memory; other processes and the kernel access it as one word, too.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.0.as_ptr()).published) }
    }

    fn write_shape(&mut self, index: usize, shape: &Shape) {
        // SAFETY: inside the memory, aligned; the same struct, as the build has compared.
        unsafe { ptr::write_volatile((&raw mut (*self.0.as_ptr()).shapes[index % SHAPES]).cast(), *shape) };
    }

    fn write_plan(&mut self, index: usize, plan: &PlanBuffer) {
        // SAFETY: inside the memory, aligned.
        unsafe { ptr::write_volatile(self.plan(index), *plan) };
    }

    fn renew(&mut self, index: usize, until_ns: u64) {
        // SAFETY: aligned, inside the memory; the kernel reads it meanwhile, so it is written whole.
        unsafe { ptr::write_volatile(&raw mut (*self.plan(index)).until_ns, until_ns) };
    }

    fn has_waiting(&self, cell: usize) -> bool {
        // SAFETY: inside the memory; the kernel writes it meanwhile, so each is read whole.
        unsafe {
            let cell = &raw const (*self.0.as_ptr()).cell_ctxs[cell % CELLS];
            ptr::read_volatile(&raw const (*cell).waiting) != 0
                || ptr::read_volatile(&raw const (*cell).strays) != 0
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is this struct's own. What cannot be unmapped stays until the process ends.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), size_of::<bss>()) };
    }
}
