//! The simulated machine: a simulated kernel that hosts the scheduler, over simulated hardware.
//!
//! [`Simulation`] runs [`Application`]s. What a program may do is in [`program`]; what it is made of
//! in [`memory`], [`sync`] and [`two_phase`]; what a run tells in [`measure`]. The scheduler is `bpf/`, compiled
//! natively and called through sched_ext's own interface.

mod application;
mod disks;
mod engine;
mod error;
mod kernel;
pub mod measure;
pub mod memory;
mod options;
pub mod program;
pub mod sync;
pub mod two_phase;

pub use engine::Simulation;
pub use error::SimError;
pub use hearth_abi::native::CpuStats;
pub use kernel::Flush;
pub use measure::RunResult;
pub use options::Options;
pub use program::{Application, Class, Cpu};
