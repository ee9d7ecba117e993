//! What chance decides, and the one clock.

use crate::switch;
use hearth_machine::CpuSet;
use hearth_scx::Host;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use std::cell::{Cell, RefCell};

/// So many CPUs a search for an idle one may begin at.
pub(crate) const MOST_CPUS: usize = 64;

/// CPUs that interleave by chance.
pub(crate) struct Interleaved {
    pub(crate) now_ns: Cell<u64>,
    /// One in so many accesses lets others go on.
    switch_one_in: u32,
    random: RefCell<Pcg32>,
}

impl Interleaved {
    pub(crate) fn new(switch_one_in: u32, seed: u64) -> Self {
        let random = RefCell::new(Pcg32::seed_from_u64(seed));
        Self { now_ns: Cell::new(0), switch_one_in, random }
    }

    /// A number below `end`.
    pub(crate) fn random(&self, end: u32) -> u32 {
        self.random.borrow_mut().next_u32() % end
    }
}

impl Host for Interleaved {
    fn now_ps(&self, _cpu: usize) -> u64 {
        self.now_ns.get() * 1000
    }

    fn choose(&self, cpus: CpuSet) -> usize {
        cpus.next(self.random(MOST_CPUS as u32) as usize).unwrap_or_default()
    }

    fn gap(&self) {
        if self.random(self.switch_one_in) == 0 {
            switch::suspend();
        }
    }

    fn wait(&self) {
        switch::suspend();
    }
}
