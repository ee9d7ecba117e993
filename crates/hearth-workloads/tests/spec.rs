//! The programs that are given by their misses miss as they were given, in the simulated hardware. This is about
//! what goes in, not about what comes out of a scheduler.

#![allow(clippy::unwrap_used)]

use hearth_hardware::Counters;
use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::{Options, RunResult, Simulation};
use hearth_workloads::build;
use hearth_workloads::spec::programs::{CRAFTY, MCF};
use hearth_workloads::spec::{FIRST_KIB, PROGRAMS, Program};

/// Ways of the second level.
const WAYS: u32 = 8;

fn run(program: &Program, second_kib: u64, millions: u64) -> RunResult {
    let mut machine = Machine::load("t1-dual").unwrap();
    let second = machine.caches.iter_mut().find(|cache| cache.name == "L2").unwrap();
    assert_eq!(second.ways, WAYS);
    second.size_bytes = second_kib << 10;
    let policy = Policy::load("vanilla").unwrap();
    let mut simulation = Simulation::new(&machine, &policy, &Options::default()).unwrap();
    let name = format!("{}:millions={millions}", program.description.name);
    let built = build(&name, &simulation.memory(), 1.0, 1).unwrap();
    built.applications.into_iter().for_each(|application| simulation.add(application));
    let result = simulation.run().unwrap();
    (built.check)().unwrap();
    result
}

/// What is counted in so many instructions after as many others, and CPU time in nanoseconds.
fn warm(program: &Program, second_kib: u64, millions: u64) -> (Counters, u64) {
    let [half, whole] = [millions, 2 * millions].map(|millions| run(program, second_kib, millions).total);
    (whole.counters - half.counters, whole.cpu_ns - half.cpu_ns)
}

#[test]
fn programs_miss_as_they_were_given() {
    for program in PROGRAMS {
        let (name, curve) = (program.description.name, program.curve());
        // As many references of each.
        let millions = (2500.0 / curve.misses(f64::from(FIRST_KIB))).ceil() as u64;
        for second_kib in [128, 512, 1024] {
            let (counters, _) = warm(program, second_kib, millions);
            let misses = (counters.misses() - counters.instruction_misses) as f64;
            let measured = misses / (millions as f64 * 1000.0);
            let given = curve.misses_in(second_kib as f64, WAYS);
            // Where hardly any miss, those that are still to be missed for the first time count.
            assert!((measured - given).abs() < 0.1 * given + 0.06, "{name} {second_kib}: {measured} {given}");
        }
    }
}

#[test]
fn an_instruction_takes_a_cycle_and_what_its_misses_take() {
    for program in [&CRAFTY, &MCF] {
        let (counters, cpu_ns) = warm(program, 1024, 50);
        let cycles = (cpu_ns * 1000 - counters.stall_ps) as f64 / 1e12 * 992e6;
        // A first-level hit takes three, which no reference does without.
        let given = 50e6 + 2.0 * (counters.reads + counters.writes) as f64;
        assert!((cycles / given - 1.0).abs() < 0.01, "{}: {cycles} {given}", program.description.name);
    }
}
