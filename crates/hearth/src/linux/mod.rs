//! Commands for the real kernel.

pub mod doctor;
pub mod start;
pub mod status;
pub mod stop;
pub mod undo;
