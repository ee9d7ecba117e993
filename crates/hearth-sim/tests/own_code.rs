//! What a program's own code misses is told apart from what the kernel does for it.

#![allow(clippy::unwrap_used)]

use hearth_hardware::{Counters, Placement};
use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::{Application, Cpu, Options, Simulation};

const PAGES: u64 = 16;

type Look<'a> = dyn Fn(&mut Cpu<'_>) + 'a;

/// The counts of a program that looks at all lines of some pages.
fn counters(run: impl FnOnce(&mut Cpu<'_>, &Look<'_>) + 'static) -> Counters {
    let machine = Machine::load("xeon-smp2").unwrap();
    let policy = Policy::load("vanilla").unwrap();
    let mut simulation = Simulation::new(&machine, &policy, &Options::default()).unwrap();
    let base = simulation.memory().segment(PAGES * machine.page_bytes, Placement::FirstTouch).base;
    let mut application = Application::new("looks");
    application.task("looks", move |cpu| {
        let lines = (base..base + PAGES * machine.page_bytes).step_by(machine.line_bytes as usize);
        run(cpu, &|cpu| lines.clone().for_each(|line| cpu.read(line)));
    });
    simulation.add(application);
    simulation.run().unwrap().total.counters
}

#[test]
fn misses_of_the_kernel_are_not_a_programs_own() {
    let own = counters(|cpu, look| look(cpu));
    let kernels = counters(|cpu, look| cpu.in_kernel(look));
    let both = counters(|cpu, look| {
        cpu.in_kernel(look);
        look(cpu);
    });
    assert_eq!(own.own_l2_misses, PAGES, "the kernel clears a page that is touched first");
    assert_eq!(kernels.own_l2_misses, 0);
    assert_eq!(both.own_l2_misses, 0, "they fit into the second level, and are there");
    assert_eq!(own.misses(), kernels.misses());
}
