//! Runs one program on a simulated machine, for tests.

use crate::Built;
use crate::cool::Invocation;
use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::memory::Memory;
use hearth_sim::{Options, Simulation};

/// Runs a program to its end; it must come to the right result.
pub fn run(build: impl FnOnce(&Memory) -> Built) {
    run_on("dash-16", "standard", build);
}

/// The same on the data-affinity paper's machine, without its scheduler and with it.
pub fn run_by_data(build: impl Fn(&Memory) -> Built) {
    ["vanilla", "data-affinity"].into_iter().for_each(|policy| run_on("xeon-smp2", policy, &build));
}

fn run_on(machine: &str, policy: &str, build: impl FnOnce(&Memory) -> Built) {
    let machine = Machine::load(machine).unwrap();
    let policy = Policy::load(policy).unwrap();
    let mut simulation = Simulation::new(&machine, &policy, &Options::default()).unwrap();
    let built = build(&simulation.memory());
    built.applications.into_iter().for_each(|application| simulation.add(application));
    simulation.run().unwrap();
    (built.check)().unwrap();
}

/// Runs a task-parallel program with one process and with many; it must come to the right result each time.
pub fn run_with_any_number_of_processes(build: impl Fn(&Memory, &Invocation) -> Built) {
    for processes in [1, 3, 8, 16] {
        let invocation = Invocation { processes, ..Invocation::default() };
        run(|memory| build(memory, &invocation));
    }
}
