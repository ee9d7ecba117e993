//! A process that only computes: it makes no references, so who runs when follows from the policy
//! alone. For the laws of the affinity constants.

use crate::{Built, Description, Kind};
use hearth_sim::memory::Memory;
use hearth_sim::program::Application;

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "spin",
    description: "one process that computes and touches no memory",
    kind: Kind::Synthetic,
    source: "a probe of the scheduler",
};

/// Cycles at scale 1: 20 s of a 33 MHz CPU.
const CYCLES: u64 = 660_000_000;
const STEP_CYCLES: u64 = 1000;

/// Sets the program up; see [`crate::build`].
pub fn build(_memory: &Memory, scale: f64, _seed: u64) -> Built {
    let steps = ((CYCLES / STEP_CYCLES) as f64 * scale).ceil() as u64;
    let mut application = Application::new(DESCRIPTION.name);
    application.task("spin", move |cpu| (0..steps).for_each(|_| cpu.compute(STEP_CYCLES)));
    Built::new(application, || Ok(()))
}
