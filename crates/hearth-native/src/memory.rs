//! The loaded object's memory for plans.

#![allow(unsafe_code)]

use crate::Scheduler;
use hearth_seam::{CELLS, Cell, Memory, PLANS, PlanBuffer, SHAPES, Shape};
use std::io::Error;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

/// A loaded scheduler's memory, for plans to be published in.
pub struct ObjectMemory {
    published: *mut u64,
    shapes: *mut Shape,
    plans: *mut PlanBuffer,
    cells: *const Cell,
    // Holds the object that the pointers point into.
    _scheduler: Rc<Scheduler>,
}

impl ObjectMemory {
    pub(crate) fn new(scheduler: &Rc<Scheduler>) -> Result<Self, Error> {
        Ok(Self {
            published: scheduler.symbol(c"published")?.cast(),
            shapes: scheduler.symbol(c"shapes")?.cast(),
            plans: scheduler.symbol(c"plans")?.cast(),
            cells: scheduler.symbol(c"cell_ctxs")?.cast(),
            _scheduler: Rc::clone(scheduler),
        })
    }
}

impl Memory for ObjectMemory {
    fn published(&self) -> &AtomicU64 {
        // SAFETY: aligned, and in the object for as long as `self` lives.
        unsafe { AtomicU64::from_ptr(self.published) }
    }

    fn write_shape(&mut self, index: usize, shape: &Shape) {
        // SAFETY: one of the object's SHAPES, of this type: the build has compared them.
        unsafe { ptr::write_volatile(self.shapes.add(index % SHAPES), *shape) };
    }

    fn write_plan(&mut self, index: usize, plan: &PlanBuffer) {
        // SAFETY: one of the object's PLANS, of this type: the build has compared them.
        unsafe { ptr::write_volatile(self.plans.add(index % PLANS), *plan) };
    }

    fn renew(&mut self, index: usize, until_ns: u64) {
        // SAFETY: as above.
        unsafe { ptr::write_volatile(&raw mut (*self.plans.add(index % PLANS)).until_ns, until_ns) };
    }

    fn has_waiting(&self, cell: usize) -> bool {
        // SAFETY: one of the object's CELLS, of this type: the build has compared them.
        unsafe {
            let cell = self.cells.add(cell % CELLS);
            ptr::read_volatile(&raw const (*cell).waiting) != 0
                || ptr::read_volatile(&raw const (*cell).strays) != 0
        }
    }
}
