//! Commands for the real kernel.

pub mod choice;
pub mod cpus;
pub mod doctor;
pub mod explain;
pub mod pages;
pub mod plan;
pub mod set;
pub mod start;
pub mod status;
pub mod stop;
pub mod trace;
pub mod undo;
