//! The simulated machine: a simulated kernel that hosts the scheduler, over simulated hardware.
//!
//! - [`program`]: what a program may do; [`memory`] and [`sync`]: what it is made of.

pub mod memory;
pub mod program;
pub mod sync;
