//! Machines of several nodes: where I/O starts, programs that start later, pages that move.

#![allow(clippy::unwrap_used)]

use hearth_hardware::Placement;
use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_policy::pages::PagePolicy;
use hearth_sim::memory::{Array, Memory};
use hearth_sim::{Application, Cpu, Options, RunResult, Simulation};

const PAGES: usize = 100;
/// Elements of a page.
const WORDS: usize = 512;

fn dash() -> Machine {
    Machine::load("dash-16").unwrap()
}

/// Runs what `programs` sets up under `both`, and under a page policy if one is named.
fn run(machine: &Machine, pages: Option<&str>, programs: impl Fn(&Memory) -> Vec<Application>) -> RunResult {
    let options = Options { audit: true, timeline: true, sample_ns: 10_000_000, ..Options::default() };
    let mut simulation = Simulation::new(machine, &Policy::load("both").unwrap(), &options).unwrap();
    if let Some(pages) = pages {
        simulation.migrate_pages(machine, &PagePolicy::load(pages).unwrap()).unwrap();
    }
    for application in programs(&simulation.memory()) {
        simulation.add(application);
    }
    simulation.run().unwrap()
}

fn sweep(cpu: &mut Cpu<'_>, array: &Array<u64>) {
    (0..array.len()).step_by(8).for_each(|index| {
        array.get(cpu, index);
    });
}

/// A program whose pages are touched on the node where it starts, and which goes to another node for its
/// I/O, to stay there: affinity gives it no reason to come back.
fn leaver(memory: &Memory) -> Vec<Application> {
    let array = memory.array::<u64>(PAGES * WORDS, Placement::FirstTouch);
    let mut application = Application::new("leaver");
    application.task("leaver", move |cpu| {
        sweep(cpu, &array);
        cpu.io(4096);
        (0..20).for_each(|_| sweep(cpu, &array));
    });
    vec![application]
}

/// A DASH whose devices hang on its second cluster.
fn devices_on_node_1() -> Machine {
    let mut machine = dash();
    machine.kernel.io_node = Some(1);
    machine
}

#[test]
fn a_request_to_the_disk_starts_on_the_node_that_has_it() {
    let here = run(&dash(), None, leaver);
    assert_eq!(here.total.node_moves, 0, "it started on node 0, which has the devices");
    let there = run(&devices_on_node_1(), None, leaver);
    assert_eq!(there.total.node_moves, 1, "it went to node 1 and stayed");
    assert_eq!(there.applications[0].node_switches_ns.len(), 1);
    let mut anywhere = devices_on_node_1();
    anywhere.kernel.io_node = None;
    assert_eq!(run(&anywhere, None, leaver).total.node_moves, 0);
}

#[test]
fn pages_follow_their_process_and_stay() {
    let machine = devices_on_node_1();
    let (stay, follow) = (run(&machine, None, leaver), run(&machine, Some("dash"), leaver));
    let last = |result: &RunResult| result.samples.last().unwrap().pages[0];
    assert_eq!(stay.total.counters.page_moves, 0);
    assert!(last(&stay).local * 10 < last(&stay).all, "{:?}", last(&stay));
    assert!(follow.total.counters.page_moves >= PAGES as u64);
    assert!(last(&follow).local * 10 >= last(&follow).all * 9, "{:?}", last(&follow));
    assert_eq!(last(&follow).all, last(&stay).all, "pages are conserved");
    assert!(follow.total.counters.remote_misses() * 2 < stay.total.counters.remote_misses());
}

#[test]
fn a_node_without_room_gets_no_page_and_asking_costs_little() {
    let mut machine = devices_on_node_1();
    // Too little for the leaver's pages, and taken by the kernel's own before it comes.
    machine.nodes[1].memory_bytes = 4 * machine.page_bytes;
    let (stay, full) = (run(&machine, None, leaver), run(&machine, Some("dash"), leaver));
    assert!(full.total.counters.page_moves <= 4, "{}", full.total.counters.page_moves);
    let more_ps = full.total.counters.system_ps - stay.total.counters.system_ps;
    assert!(more_ps > 0, "each second it is asked again");
    assert!(more_ps < full.total.cpu_ns * 1000 / 10, "{more_ps} ps of {} ns", full.total.cpu_ns);
}

/// Two programs on different nodes that sweep the same pages in turn.
fn sharers(memory: &Memory) -> Vec<Application> {
    let array = memory.array::<u64>(PAGES * WORDS, Placement::Node(0));
    let mut application = Application::new("sharers");
    for task in 0..8 {
        let array = array.clone();
        application.task(&format!("sharer-{task}"), move |cpu| (0..40).for_each(|_| sweep(cpu, &array)));
    }
    vec![application]
}

#[test]
fn shared_pages_do_not_go_back_and_forth() {
    let result = run(&dash(), Some("dash"), sharers);
    let periods = result.elapsed_ns / 1_000_000_000 + 1;
    let moves = result.total.counters.page_moves;
    assert!(moves > 0, "tasks on two nodes miss the pages");
    assert!(moves <= PAGES as u64 * periods, "{moves} moves in {periods} defrost periods");
}

#[test]
fn a_policy_that_needs_a_recorded_run_is_refused() {
    let mut simulation =
        Simulation::new(&dash(), &Policy::load("both").unwrap(), &Options::default()).unwrap();
    let post_facto = PagePolicy::load("post-facto").unwrap();
    let error = simulation.migrate_pages(&dash(), &post_facto).unwrap_err().to_string();
    assert!(error.contains("post-facto") && error.contains("hearth lab M"), "{error}");
}

#[test]
fn a_program_starts_when_it_is_told_and_is_timed_from_there() {
    const START_NS: u64 = 1_500_000_000;
    let result = run(&dash(), None, |_| {
        let spin = |name: &str, start_ns| {
            let mut application = Application::new(name);
            application.start_ns = start_ns;
            application.task(name, |cpu| (0..1000).for_each(|_| cpu.compute(33_000)));
            application
        };
        vec![spin("early", 0), spin("late", START_NS)]
    });
    let [early, late] = &result.applications[..] else { panic!("two applications") };
    assert_eq!((early.start_ns, late.start_ns), (0, START_NS));
    let ratio = late.execution_ns as f64 / early.execution_ns as f64;
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
    let begin_ns = result.timeline.iter().filter(|stretch| stretch.task == 1).map(|stretch| stretch.start_ns);
    assert!(begin_ns.min().unwrap() >= START_NS);
}
