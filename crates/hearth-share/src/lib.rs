//! How many CPUs each program can get now.

pub mod demand;
pub mod share;
pub mod steady;
pub mod whole;

pub use demand::{Application, Demand, Group, Mask};
