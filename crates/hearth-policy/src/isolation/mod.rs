//! How fast a task would be with a fair part of the cache (Fedorova et al. 2007, section 3), of counters of
//! what it did beside others.
//!
//! Nobody can try it: the cache gives its lines to whoever misses. But tasks that miss equally often end up
//! with equal parts. So a task's *fair miss rate* is the one at which its co-runners miss as often as it
//! does. Its misses for each cycle grow with theirs on a line that samples give:
//!
//! ```text
//! own misses                        . '
//!   per cycle             . '  x        own = a (sum of n co-runners) + b        equation 1
//!             |       x '
//!        fair +---- + -- - - - - -      fair = a n fair + b
//!             | . ' |                   fair = b / (1 - a n)                     equation 2
//!           b +'    |
//!             +-----+----------------
//!                 n fair                sum of co-runners' misses per cycle
//! ```
//!
//! The standard error of `fair` is that of the line at `n fair`, over `1 - a n`: the delta method on equation
//! 2. Co-runners that are too alike, or all far from the fair point, make it large.
//!
//! **Instructions for each cycle** follow from misses. Of a task's cycles for each instruction, `c0` are its
//! own, and each miss takes `L` more:
//!
//! ```text
//! 1 / ipc = c0 + (misses per instruction) L
//!       1 = c0 ipc + m L                          times ipc; m is misses per cycle
//!     ipc = (1 - m L) / c0
//! L(u)    = memory + transfer u / (2 (1 - u))     a line waits for the bus as in the queue M/D/1
//! u       = transfer (lines per cycle of all)     the part of time in which the bus is taken
//! ```
//!
//! Each sample gives a `c0 = (1 - m L(u)) / ipc`; their middle counts. With a fair cache all miss at the rate
//! `f`, and move `w` lines for each miss, which samples tell of the task and of its co-runners:
//!
//! ```text
//! fair ipc = (1 - f L(u)) / c0,      u = transfer f (w + n w_others)
//! ```
//!
//! What it refuses to express: misses that overlap each other or computing (`L` is then what one costs in
//! effect), a `c0` that differs beside other co-runners (processors that share more than a cache), and
//! programs whose behaviour changes while they are sampled.

pub mod blame;
mod bus;
mod estimate;
mod regression;
mod runs;
pub mod side_by_side;
pub mod weights;

pub use bus::Bus;
pub use estimate::{Confidence, Estimate, Estimator, Why, estimate};
pub use regression::{Fit, Line};
pub use runs::{Counting, Runs};

/// Samples that it takes to estimate. (Section 4.)
pub const SAMPLES: usize = 10;

/// A run with fewer instructions is no sample: the cache was still cold. (Section 4.)
pub const LEAST_INSTRUCTIONS: u64 = 10_000_000;

/// An estimate whose standard error is a greater part of it is weak. Two of three that pass are closer to the
/// truth than this, so a share that follows from one is off by less, more often than not.
pub const MOST_ERROR: f64 = 0.1;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
