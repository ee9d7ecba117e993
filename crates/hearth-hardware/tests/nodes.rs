//! What a reference costs by where its line is: in the own node, at its home, or modified in a third node.

#![allow(clippy::unwrap_used)]

use hearth_hardware::{Access, Counters, Hardware, Mode, Placement};
use hearth_machine::Machine;

/// A DASH whose TLB costs nothing: four nodes of four CPUs.
fn dash() -> Machine {
    let mut machine = Machine::load("dash-16").unwrap();
    machine.tlb.refill_cycles = 0;
    machine
}

/// The machine with cold caches, and a page on node 0.
fn cold(machine: &Machine) -> (Hardware, u64) {
    let mut hardware = Hardware::new(machine, 1).unwrap();
    let base = hardware.segment(machine.page_bytes, Placement::Node(0)).base;
    (hardware, base)
}

/// Makes a reference; returns its cycles, but for those in which it waited, and what it counted.
fn touch(hardware: &mut Hardware, cpu: usize, address: u64, access: Access) -> (u64, Counters) {
    let port = hardware.ports()[cpu].clone();
    let (ps, before) = (port.now_ps(), port.counters());
    let _ = hardware.reference(cpu, address, access, Mode::User);
    let counted = port.counters() - before;
    ((port.now_ps() - ps - counted.queue_ps) / port.cycle_ps(), counted)
}

#[test]
fn memory_costs_by_the_node_that_has_it() {
    let machine = dash();
    let (mut hardware, base) = cold(&machine);
    let (cycles, counted) = touch(&mut hardware, 1, base, Access::Read);
    assert_eq!((cycles, counted.memory_local), (30, 1));
    let (cycles, counted) = touch(&mut hardware, 4, base, Access::Read);
    assert_eq!((cycles, counted.memory_remote), (101, 1), "no neighbour has it");
}

#[test]
fn a_neighbour_supplies_what_it_has_clean_to_read_and_not_to_write() {
    let machine = dash();
    let (mut hardware, base) = cold(&machine);
    let _ = touch(&mut hardware, 4, base, Access::Read);
    let (cycles, counted) = touch(&mut hardware, 5, base, Access::Read);
    assert_eq!((cycles, counted.cache_to_cache, counted.remote_misses()), (30, 1, 0), "{counted:?}");
    let (cycles, counted) = touch(&mut hardware, 6, base, Access::Write);
    assert_eq!((cycles, counted.memory_remote), (101, 1), "its home has to say so: {counted:?}");
    let (cycles, counted) = touch(&mut hardware, 7, base, Access::Write);
    assert_eq!((cycles, counted.remote_misses()), (30, 0), "but who may write it hands that on: {counted:?}");

    let (mut hardware, base) = cold(&Machine {
        memory: hearth_machine::Memory { has_node_bus: false, ..machine.memory.clone() },
        ..machine
    });
    let _ = touch(&mut hardware, 4, base, Access::Read);
    assert_eq!(
        touch(&mut hardware, 5, base, Access::Read).1.memory_remote,
        1,
        "without a bus nobody sees it"
    );
}

#[test]
fn a_line_that_a_third_node_modified_takes_longest() {
    let machine = dash();
    let (mut hardware, base) = cold(&machine);
    let _ = touch(&mut hardware, 8, base, Access::Write);
    let (cycles, counted) = touch(&mut hardware, 4, base, Access::Read);
    assert_eq!((cycles, counted.cache_to_cache_remote), (132, 1));
    let _ = touch(&mut hardware, 8, base + 16, Access::Write);
    let (cycles, counted) = touch(&mut hardware, 0, base + 16, Access::Read);
    assert_eq!((cycles, counted.cache_to_cache_remote), (101, 1), "two nodes have to do with it");
}

#[test]
fn an_upgrade_pays_the_way_to_the_lines_home() {
    let machine = dash();
    let (mut hardware, base) = cold(&machine);
    for cpu in [0, 4] {
        let _ = touch(&mut hardware, cpu, base, Access::Read);
        let _ = touch(&mut hardware, cpu, base + 16, Access::Read);
    }
    let (cycles, counted) = touch(&mut hardware, 4, base, Access::Write);
    assert_eq!((cycles, counted.upgrades), (1 + 101, 1));
    let (cycles, counted) = touch(&mut hardware, 0, base + 16, Access::Write);
    assert_eq!((cycles, counted.upgrades), (1 + 30, 1));
}

/// How long CPU 4, of node 1, waits for lines of node 0 when all CPUs of a node ask for lines of their own there.
fn waits_beside(machine: &Machine, busy: std::ops::Range<usize>, home: usize) -> u64 {
    const PAGES: u64 = 64;
    let mut hardware = Hardware::new(machine, 1).unwrap();
    let asked = hardware.segment(PAGES * machine.page_bytes, Placement::Node(0)).base;
    let beside: Vec<(usize, u64)> = busy
        .map(|cpu| (cpu, hardware.segment(PAGES * machine.page_bytes, Placement::Node(home)).base))
        .collect();
    for line in 0..PAGES * machine.page_bytes / machine.line_bytes {
        let _ = touch(&mut hardware, 4, asked + line * machine.line_bytes, Access::Read);
        for (cpu, base) in &beside {
            let port = hardware.ports()[*cpu].clone();
            port.set_now_ps(hardware.ports()[4].now_ps());
            let _ = touch(&mut hardware, *cpu, base + line * machine.line_bytes, Access::Read);
        }
    }
    hardware.ports()[4].counters().queue_ps
}

#[test]
fn a_remote_miss_waits_for_both_buses_and_for_the_link() {
    let mut machine = dash();
    let alone = waits_beside(&machine, 0..0, 0);
    assert!(waits_beside(&machine, 0..4, 0) > 2 * alone, "the home's bus is busy");
    assert!(waits_beside(&machine, 5..8, 1) > 2 * alone, "the own bus is busy");
    let third = waits_beside(&machine, 8..12, 2);
    assert!(third < alone * 11 / 10, "a third node's bus is nothing to it: {third} of {alone}");
    machine.memory.link_bytes_per_s = Some(1_000_000);
    assert!(waits_beside(&machine, 0..0, 0) > 10 * alone, "the link is narrow");
}
