//! Recorded references, replayed on the simulated machine.

#![allow(clippy::unwrap_used)]

use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::{Options, RunResult, Simulation};
use hearth_trace::{Access, Trace, TraceWriter};
use hearth_workloads::replay;

const BLOCKS: u64 = 20_000;
const INSTRUCTIONS_PER_BLOCK: u64 = 10;

/// A program of one thread that goes round a block of ten instructions, one of which loads eight
/// bytes, each time eight bytes further on in a range of 32 pages.
fn trace(directory: &tempfile::TempDir) -> Trace {
    let path = directory.path().join("walk.trace");
    let mut writer = TraceWriter::create(&path, 1).unwrap();
    let block = writer.define_block(0x40_0000, 40, INSTRUCTIONS_PER_BLOCK as u32);
    for round in 0..BLOCKS {
        let address = 0x80_0000 + round * 8 % (32 << 12);
        let load = Access { instruction: 3, write: false, address, log2_bytes: 3 };
        writer.execute(0, block, &[load]).unwrap();
    }
    writer.finish(&["walk".into()], "test", &[]).unwrap();
    Trace::open(&path).unwrap()
}

fn run(trace: &Trace, copies: usize, scale: f64) -> RunResult {
    let machine = Machine::load("sgi-4d340").unwrap();
    let policy = Policy::load("standard").unwrap();
    let mut simulation = Simulation::new(&machine, &policy, &Options::default()).unwrap();
    let mut checks = Vec::new();
    for built in replay(trace, copies, &simulation.memory(), scale).unwrap() {
        built.applications.into_iter().for_each(|application| simulation.add(application));
        checks.push(built.check);
    }
    let result = simulation.run().unwrap();
    for check in checks {
        check().unwrap();
    }
    result
}

#[test]
fn every_copy_makes_every_reference_on_pages_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let trace = trace(&directory);
    let [one, three] = [1, 3].map(|copies| run(&trace, copies, 1.0));
    assert_eq!(three.tasks.len(), 3);
    assert_eq!(three.total.counters.page_faults - one.total.counters.page_faults, 2 * 33);
    assert!(three.total.counters.reads - one.total.counters.reads >= 2 * BLOCKS);
}

#[test]
fn an_instruction_takes_a_cycle_and_references_what_they_miss() {
    let directory = tempfile::tempdir().unwrap();
    let result = run(&trace(&directory), 1, 1.0);
    let least_ns =
        (BLOCKS * INSTRUCTIONS_PER_BLOCK) as f64 / 33e6 * 1e9 + result.total.counters.stall_ps as f64 / 1e3;
    let cpu_ns = result.total.cpu_ns as f64;
    assert!((least_ns..least_ns * 1.15).contains(&cpu_ns), "{cpu_ns} ns, at least {least_ns}");
}

#[test]
fn a_smaller_scale_replays_the_beginning() {
    let directory = tempfile::tempdir().unwrap();
    let trace = trace(&directory);
    let [all, quarter] = [1.0, 0.25].map(|scale| run(&trace, 1, scale).total.counters.page_faults);
    assert_eq!(all - quarter, 32 - 10);
}

#[test]
fn the_trace_that_ships_with_the_project_replays() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/sort-sources.trace");
    let trace = Trace::open(path).unwrap();
    let result = run(&trace, 8, 0.1);
    let recorded = trace.info().threads[0].references() as f64 * 0.1 * 8.0;
    let replayed = (result.total.counters.reads + result.total.counters.writes) as f64;
    assert!(replayed > 0.8 * recorded, "{replayed} of {recorded} references");
}

#[test]
fn a_damaged_trace_ends_every_copy_and_their_checks_say_where() {
    let directory = tempfile::tempdir().unwrap();
    let whole = trace(&directory);
    let mut bytes = std::fs::read(whole.path()).unwrap();
    bytes[100] ^= 1;
    let path = directory.path().join("damaged.trace");
    std::fs::write(&path, bytes).unwrap();
    let machine = Machine::load("sgi-4d340").unwrap();
    let policy = Policy::load("standard").unwrap();
    let mut simulation = Simulation::new(&machine, &policy, &Options::default()).unwrap();
    let mut checks = Vec::new();
    for built in replay(&Trace::open(&path).unwrap(), 3, &simulation.memory(), 1.0).unwrap() {
        built.applications.into_iter().for_each(|application| simulation.add(application));
        checks.push(built.check);
    }
    let result = simulation.run().unwrap();
    assert!(result.total.counters.reads < BLOCKS, "nobody replays what is damaged");
    for check in checks {
        let message = check().unwrap_err();
        assert!(message.contains("damaged.trace: byte 16 (chunk 0): corrupt: its checksum"), "{message}");
    }
}
