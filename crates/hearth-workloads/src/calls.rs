//! Calls of a process that computes: now and then it waits for a disk, or makes a call of the system after which the
//! system looks at its run queue. Table III of the first paper says how many dispatch intervals of its scientific
//! programs end so, and no more; what they read or write is not known.

use hearth_sim::program::Cpu;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// Bytes of a transfer: a block of the file system.
const BLOCK_BYTES: u64 = 8 * 1024;

/// After how many pieces of its work, on average, a process makes a call.
#[derive(Clone, Copy)]
pub struct Rates {
    /// One that waits for a disk.
    pub transfer: u32,
    /// One that does not wait.
    pub call: u32,
}

/// When a process makes calls: at random, whatever it did before.
pub struct Calls {
    rates: Rates,
    random: Pcg32,
}

impl Calls {
    /// Those of one process of a program.
    pub fn new(rates: Rates, seed: u64, process: usize) -> Self {
        let mut random = Pcg32::seed_from_u64(seed);
        random.advance((process as u64) << 32);
        Self { rates, random }
    }

    /// A piece of work is done.
    pub fn pass(&mut self, cpu: &mut Cpu<'_>) {
        if self.random.next_u32().is_multiple_of(self.rates.transfer) {
            cpu.io(BLOCK_BYTES);
        }
        if self.random.next_u32().is_multiple_of(self.rates.call) {
            cpu.yield_now();
        }
    }
}
