//! Commands for the real kernel.

pub mod start;
pub mod status;
pub mod stop;
pub mod undo;
