//! Pages that move between nodes.

#![allow(clippy::unwrap_used)]

use hearth_hardware::{Access, Hardware, Kinds, MissKind, Mode, Placement};
use hearth_machine::{Frames, Machine};

const PAGE: u64 = 4096;

/// A DASH and the first page of a segment that CPU 0, on node 0, has touched.
fn dash() -> (Hardware, u64) {
    let mut hardware = Hardware::new(&Machine::load("dash-16").unwrap(), 1).unwrap();
    let segment = hardware.segment(4 * PAGE, Placement::FirstTouch);
    hardware.ports()[0].set_task(1, false);
    let _ = hardware.reference(0, segment.base, Access::Write, Mode::User);
    (hardware, segment.base)
}

/// What a load by CPU 4, on node 1, cost and counted.
fn load(hardware: &mut Hardware, address: u64) -> (u64, hearth_hardware::Counters) {
    let port = hardware.ports()[4].clone();
    let (ps, counters) = (port.now_ps(), port.counters());
    let _ = hardware.reference(4, address, Access::Read, Mode::User);
    (port.now_ps() - ps, port.counters() - counters)
}

#[test]
fn a_page_that_has_moved_is_local_where_it_went() {
    let (mut hardware, base) = dash();
    let page = (base / PAGE) as u32;
    assert_eq!(hardware.home(page), Some(0));
    assert_eq!(load(&mut hardware, base + 16).1.memory_remote, 1);
    assert!(hardware.move_page(5, page, 1), "node 1 has room");
    assert_eq!(hardware.home(page), Some(1));
    let (_, counters) = load(&mut hardware, base + 16);
    assert_eq!((counters.tlb_misses, counters.memory_remote), (1, 0), "{counters:?}");
    assert_eq!(counters.cache_to_cache, 1, "who copied the page has its lines, modified: {counters:?}");
    assert_eq!(counters.cache_to_cache_remote, 0, "and is on the same node");
}

#[test]
fn a_move_takes_about_two_milliseconds_with_the_kernels_part() {
    let (mut hardware, base) = dash();
    let port = hardware.ports()[5].clone();
    assert!(hardware.move_page(5, (base / PAGE) as u32, 1));
    let machine = Machine::load("dash-16").unwrap();
    let cycles = port.now_ps() / machine.cycle_ps() + u64::from(machine.kernel.page_move.cycles);
    assert!((60_000..72_000).contains(&cycles), "the paper's 66,000 cycles: {cycles}");
    assert_eq!(port.counters().system_ps, port.now_ps(), "all of it is the kernel's time");
}

#[test]
fn pages_are_conserved_and_a_full_node_takes_none() {
    let mut machine = Machine::load("dash-16").unwrap();
    machine.nodes[1].memory_bytes = 2 * PAGE;
    let mut hardware = Hardware::new(&machine, 1).unwrap();
    let segment = hardware.segment(4 * PAGE, Placement::Node(0));
    hardware.ports()[0].set_task(7, false);
    let first = (segment.base / PAGE) as u32;
    for page in 0..4 {
        let _ = hardware.reference(0, segment.base + page * PAGE, Access::Write, Mode::User);
    }
    let moved: Vec<bool> = (first..first + 4).map(|page| hardware.move_page(4, page, 1)).collect();
    assert_eq!(moved, [true, true, false, false]);
    assert_eq!(hardware.resident(7), [2, 2, 0, 0]);
    assert!(!hardware.move_page(4, first + 100, 1), "a page that nobody has touched");
}

#[test]
fn the_kernel_is_told_of_the_misses_that_it_asked_for() {
    let (mut hardware, base) = dash();
    let missed = |hardware: &mut Hardware, address| {
        hardware
            .reference(4, address, Access::Read, Mode::User)
            .missed
            .map(|missed| (missed.home, missed.kinds))
    };
    assert_eq!(missed(&mut hardware, base), None);
    hardware.tell_misses(Kinds { tlb: true, cache: false });
    assert_eq!(missed(&mut hardware, base + 64), None, "the TLB holds the page by now");
    hardware.tell_misses(Kinds { tlb: true, cache: true });
    assert_eq!(missed(&mut hardware, base + 128), Some((0, Kinds { tlb: false, cache: true })));
    assert_eq!(missed(&mut hardware, base + PAGE), Some((1, Kinds { tlb: true, cache: true })));
}

#[test]
fn the_log_has_every_miss_of_programs_and_none_of_the_kernels() {
    let (mut hardware, base) = dash();
    hardware.log_misses();
    let _ = hardware.reference(4, base + 64, Access::Read, Mode::User);
    let _ = hardware.reference(5, base + 64, Access::Read, Mode::Kernel);
    let _ = hardware.reference(4, base + 68, Access::Read, Mode::User);
    let log = hardware.take_miss_log().unwrap();
    let misses: Vec<_> = log.iter().map(|miss| (miss.cpu, u64::from(miss.page), miss.kind)).collect();
    assert_eq!(misses, [(4, base / PAGE, MissKind::Tlb), (4, base / PAGE, MissKind::Cache)]);
}

/// Misses of a second walk over as many pages as there are colours, which begin at some page.
fn missed_again(machine: &Machine, seed: u64) -> u64 {
    let mut hardware = Hardware::new(machine, seed).unwrap();
    hardware.segment(seed % 7 * PAGE, Placement::FirstTouch);
    let segment = hardware.segment(machine.page_colours() * PAGE, Placement::FirstTouch);
    let port = hardware.ports()[0].clone();
    port.set_task(1, false);
    let mut walk = || {
        for page in 0..machine.page_colours() {
            let _ = hardware.reference(0, segment.base + page * PAGE + 8, Access::Read, Mode::User);
        }
        port.counters().misses()
    };
    let first = walk();
    walk() - first
}

#[test]
fn coloured_pages_do_not_meet_within_a_way_and_others_do() {
    for name in ["sgi-4d340", "dash-16"] {
        for seed in 0..50 {
            let machine = |frames| Machine { frames, ..Machine::load(name).unwrap() };
            assert_eq!(missed_again(&machine(Frames::Coloured), seed), 0, "{name}, seed {seed}");
            assert!(missed_again(&machine(Frames::Shuffled), seed) > 0, "{name}, seed {seed}");
        }
    }
}
