//! The scheduler on the simulated machine, with programs whose schedule is known.

use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::{Application, Options, RunResult, Simulation};

fn machine() -> Machine {
    Machine::load("sgi-4d340").unwrap()
}

/// Two applications of `tasks` spinning tasks each.
fn spin(policy: &Policy, tasks: usize, seconds: u64) -> RunResult {
    let mut simulation = Simulation::new(&machine(), policy, &Options::default()).unwrap();
    for name in ["a", "b"] {
        let mut application = Application::new(name);
        for task in 0..tasks {
            application.task(&format!("{name}{task}"), move |cpu| {
                (0..seconds * 33_000).for_each(|_| cpu.compute(1000));
            });
        }
        simulation.add(application);
    }
    simulation.run().unwrap()
}

#[test]
fn spinning_tasks_share_the_machine_and_leave_no_cpu_idle() {
    for policy in ["standard", "light", "heavy", "complex", "fair"] {
        let policy = Policy::load(policy).unwrap();
        let result = spin(&policy, 4, 3);
        println!("{} {:?}", policy.name, result.total);
        assert!(result.idle_share < 0.05, "{}: idle {}", policy.name, result.idle_share);
        let ideal_ns = 2 * 3_000_000_000;
        assert!(result.elapsed_ns < ideal_ns * 106 / 100, "{}: {} ns", policy.name, result.elapsed_ns);
    }
}

#[test]
fn the_effective_slice_is_forty_a_t_milliseconds() {
    for points in [3, 6, 12, 16] {
        let result = spin(&Policy::affinity(points, points), 4, 20);
        let mean_ms = result.total.slices.mean_ms();
        println!("a_t {points}: {mean_ms:.1} ms");
    }
}
