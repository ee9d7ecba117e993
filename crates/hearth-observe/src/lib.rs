//! Observes the kernel's own scheduler: what affinity could give a workload, before anything is
//! changed. `bpf/observe` counts; [`estimate`] makes of the counts reload transients and a ceiling.

mod cost;
mod counters;
mod error;
pub mod estimate;
mod figures;
pub mod layout;
pub mod neighbours;
pub mod report;
mod session;
mod target;
mod visit;

pub use counters::Present;
pub use error::ObserveError;
pub use report::Report;
pub use session::{COUNTERS_PERCENT, Each, Observed, Options, observe};
pub use target::Target;

#[allow(warnings, clippy::all)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/observe.skel.rs"));
}

#[allow(warnings, clippy::all)]
mod neighbours_skeleton {
    include!(concat!(env!("OUT_DIR"), "/neighbours.skel.rs"));
}
