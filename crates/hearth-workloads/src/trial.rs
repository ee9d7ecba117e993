//! Runs one program on a simulated machine, for tests.

use crate::Built;
use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::memory::Memory;
use hearth_sim::{Options, Simulation};

/// Runs a program to its end; it must come to the right result.
pub fn run(build: impl FnOnce(&Memory) -> Built) {
    let machine = Machine::load("dash-16").unwrap();
    let policy = Policy::load("standard").unwrap();
    let mut simulation = Simulation::new(&machine, &policy, &Options::default()).unwrap();
    let built = build(&simulation.memory());
    simulation.add(built.application);
    simulation.run().unwrap();
    (built.check)().unwrap();
}
