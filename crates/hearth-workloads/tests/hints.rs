//! A program that says which data its tasks work on is not ruined by it, on machines that are nothing like the paper's.

#![allow(clippy::unwrap_used)]

use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::{Options, RunResult, Simulation};
use hearth_workloads::build;

fn run(program: &str, machine: &str, policy: &str, scale: f64) -> RunResult {
    let (machine, policy) = (Machine::load(machine).unwrap(), Policy::load(policy).unwrap());
    let mut simulation = Simulation::new(&machine, &policy, &Options::default()).unwrap();
    let built = build(program, &simulation.memory(), scale, 1).unwrap();
    built.applications.into_iter().for_each(|application| simulation.add(application));
    simulation.run().unwrap()
}

/// It pays at most as much in waits as the moves that these save (docs/concepts.md): at most twice what is best.
#[test]
fn declared_data_makes_no_program_twice_as_slow() {
    for machine in ["chiplet-64", "server-2s", "desktop-8", "dash-16", "xeon-smp2"] {
        for (program, scale) in [
            ("chat:rooms=2,messages=100", 0.1),
            ("chat:rooms=4,messages=100", 0.2),
            ("chat:rooms=10,messages=50", 0.2),
            ("custom:threads=8,size=1000", 0.01),
            ("custom:threads=32,size=8000", 0.01),
        ] {
            let [declared, without] = ["fair", "fair:credit.fragment=0ms"]
                .map(|policy| run(program, machine, policy, scale).elapsed_ns);
            println!("{program} on {machine}: {:.2}", declared as f64 / without as f64);
            assert!(declared <= 2 * without, "{program} on {machine}: {declared} ns, and {without}");
        }
    }
}

/// Threads of four fragments on two CPUs without a shared cache: that is what the paper is about.
#[test]
fn declared_data_saves_misses_where_each_cpu_has_its_own_cache() {
    let [declared, without] = ["fair", "fair:credit.fragment=0ms"]
        .map(|policy| run("custom:threads=32,size=8000", "xeon-smp2", policy, 0.02));
    let [few, many] = [&declared, &without].map(|result| result.total.counters.misses());
    assert!(4 * few < many, "{few} misses, and {many}");
    let [sooner, later] = [&declared, &without].map(|result| result.elapsed_ns);
    assert!(sooner < later, "{sooner} ns, and {later}");
}
