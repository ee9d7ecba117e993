//! Pages that are ready to move, and which of them go first.

use std::cmp::Reverse;

/// A page that is ready to move, with what that is expected to bring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Nanoseconds, or accesses if the policy has no cost model.
    pub(super) benefit: u64,
    pub(super) page: u32,
}

impl Candidate {
    /// The greatest benefit first.
    pub(super) fn key(&self) -> (Reverse<u64>, u32) {
        (Reverse(self.benefit), self.page)
    }
}

/// Of accesses that were counted over some time, the horizon's part.
pub(super) fn within_horizon(accesses: u64, passed_ns: u64, horizon_ns: u64) -> u64 {
    if passed_ns <= horizon_ns {
        return accesses;
    }
    // In microseconds, the product of 32 bits and at most 1000 s fits.
    accesses.saturating_mul(horizon_ns / 1000) / (passed_ns / 1000).max(1)
}
