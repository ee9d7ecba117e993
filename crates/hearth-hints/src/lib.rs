//! How many CPUs this process can get now: not those that it sees, but its share of them, given its
//! mask, its cgroups' quotas and weights, and what else runs on the machine.
//!
//! `hearth exec` or the Hearth daemon says it. Where neither runs, the number is that of mask and
//! quota, so a program may always ask:
//!
//! ```
//! let threads = hearth_hints::cpus();
//! # assert!(threads >= 1);
//! ```
//!
//! And where a thread's data is: [`fragments`].
//!
//! The same for C is in `include/hearth.h`. [`page`] is what a program and the leader share.

/// What the page on data affinity says of Rust is so.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/fragments.md")]
pub struct Page;

pub mod fragments;
pub mod page;

pub use fragments::{enter, fragment, fragment_at, fragment_named, within};

use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::time::Duration;

unsafe extern "C" {
    safe fn hearth_cpus() -> c_int;
    safe fn hearth_cpus_wait(seen: c_int, timeout_ms: c_int) -> c_int;
    safe fn hearth_cpus_fd() -> c_int;
    safe fn hearth_want(cpus: c_int) -> c_int;
}

/// CPUs that this process can get now, at least 1. Cheap enough for each parallel region.
pub fn cpus() -> usize {
    usize::try_from(hearth_cpus()).unwrap_or(1).max(1)
}

/// Waits until the number differs from `seen`, for `timeout` at most, and returns it.
pub fn wait(seen: usize, timeout: Option<Duration>) -> usize {
    let seen = c_int::try_from(seen).unwrap_or(c_int::MAX);
    let whole_ms = |timeout: Duration| timeout.as_nanos().div_ceil(1_000_000);
    let timeout_ms = timeout.map_or(-1, |timeout| c_int::try_from(whole_ms(timeout)).unwrap_or(c_int::MAX));
    usize::try_from(hearth_cpus_wait(seen, timeout_ms)).unwrap_or(1).max(1)
}

/// A descriptor that is readable when the number may have changed, if there is one; the same at each
/// call. Read what it has, then ask [`cpus`]. That nobody says the number any more is no event.
pub fn changes() -> Option<BorrowedFd<'static>> {
    let fd = hearth_cpus_fd();
    // SAFETY: the library never closes the descriptor but in a child after fork, where nothing that
    // was borrowed before is to be used.
    (fd >= 0).then(|| unsafe { BorrowedFd::borrow_raw(fd) })
}

/// Says how many CPUs this process would use at most; 0, as at the begin: as many as there are.
/// What it would not use goes to others. Whether anybody can be told.
pub fn want(cpus: usize) -> bool {
    hearth_want(c_int::try_from(cpus).unwrap_or(c_int::MAX)) == 0
}
