//! How many CPUs each program can get now: its share of the machine, given its mask, its cgroups'
//! quotas and weights, and what else runs; and unmodified programs that follow it.
//!
//! ```text
//!  /proc, cgroups --> observe --> Look --> steady --> numbers --> pages, one a process
//!                                    \-> share -> whole
//! ```
//!
//! - [`demand`]: what is asked of the CPUs. [`share`] and [`whole`] answer it; both are pure.
//! - [`steady`]: the rule that keeps the answer from fluttering, a step every 100 ms. Pure too.
//! - [`observe`]: looks at this machine, with [`machine`], [`waits`] and [`cgroups`].
//! - [`pages`]: where a program reads its number; [`leader`]: who writes it, as soon as
//!   it hears of a program (`news`).
//! - [`follow`]: `hearth exec`, which makes unmodified parallel programs follow their number.
//! - [`service`]: the leader within the daemon. [`view`]: the number for people.

pub mod cgroups;
pub mod demand;
pub mod follow;
pub mod leader;
pub mod machine;
mod news;
pub mod observe;
pub mod pages;
pub mod reason;
mod scan;
pub mod service;
pub mod share;
pub mod steady;
pub mod view;
pub mod waits;
pub mod whole;

pub use demand::{Application, Demand, Group, Mask};
pub use leader::Leader;
