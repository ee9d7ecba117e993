//! A scheduler's memory by its global variables, wherever its host has them.

use crate::{CELLS, Cell, Memory, PLANS, PlanBuffer, SHAPES, Shape};
use std::ptr;
use std::sync::atomic::AtomicU64;

/// Where the globals of one loaded scheduler are. Callbacks read and write them meanwhile, so nothing here
/// is a reference to them but the published word, which is atomic.
pub struct Globals<O> {
    published: *mut u64,
    shapes: *mut Shape,
    plans: *mut PlanBuffer,
    cells: *const Cell,
    // Holds what the pointers point into.
    _owner: O,
}

// SAFETY: the pointers may be used from any thread, as `new` asks.
unsafe impl<O: Send> Send for Globals<O> {}

impl<O> Globals<O> {
    /// The word, [`SHAPES`] shapes, [`PLANS`] plans and [`CELLS`] cells of a scheduler.
    ///
    /// # Safety
    /// The pointers are to `published`, `shapes`, `plans` and `cell_ctxs` of one scheduler whose build has
    /// compared them with this crate's. They are valid, on whatever thread, for as long as `owner` lives.
    pub unsafe fn new(
        published: *mut u64,
        shapes: *mut Shape,
        plans: *mut PlanBuffer,
        cells: *const Cell,
        owner: O,
    ) -> Self {
        Self { published, shapes, plans, cells, _owner: owner }
    }
}

impl<O> Memory for Globals<O> {
    fn published(&self) -> &AtomicU64 {
        // SAFETY: aligned, and there for as long as `self` lives; whoever else accesses it does so as one word.
        unsafe { AtomicU64::from_ptr(self.published) }
    }

    fn write_shape(&mut self, index: usize, shape: &Shape) {
        // SAFETY: one of SHAPES, of this type.
        unsafe { ptr::write_volatile(self.shapes.add(index % SHAPES), *shape) };
    }

    fn write_plan(&mut self, index: usize, plan: &PlanBuffer) {
        // SAFETY: one of PLANS, of this type.
        unsafe { ptr::write_volatile(self.plans.add(index % PLANS), *plan) };
    }

    fn renew(&mut self, index: usize, until_ns: u64) {
        // SAFETY: one of PLANS; the scheduler reads it meanwhile, so it is written whole.
        unsafe { ptr::write_volatile(&raw mut (*self.plans.add(index % PLANS)).until_ns, until_ns) };
    }

    fn has_waiting(&self, cell: usize) -> bool {
        // SAFETY: one of CELLS; the scheduler writes it meanwhile, so each is read whole.
        unsafe {
            let cell = self.cells.add(cell % CELLS);
            ptr::read_volatile(&raw const (*cell).waiting) != 0
                || ptr::read_volatile(&raw const (*cell).strays) != 0
        }
    }
}
