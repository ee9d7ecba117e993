//! The fast memory system agrees with the naive one on every hit, miss, eviction and write-back.

#![allow(clippy::unwrap_used)]

mod naive;

use hearth_hardware::{Access, Hardware, Mode, Placement};
use hearth_machine::{Cache, Frames, Holds, Machine, Replacement, Tlb};
use naive::{Counts, Naive};
use proptest::prelude::*;

const LINE_BYTES: u64 = 16;
/// Pages are larger than any cache here, so that addresses and frames select the same sets.
const PAGE_BYTES: u64 = 4096;

#[derive(Clone, Debug)]
struct Shape {
    cpus: usize,
    is_split: bool,
    l1: (u64, u32),
    /// Behind the first: sets and ways, what it holds, how many CPUs share one.
    outer: Vec<((u64, u32), Holds, usize)>,
    is_parted: bool,
    has_node_bus: bool,
    tlb: Tlb,
}

fn tlb() -> impl Strategy<Value = Tlb> {
    let replacement = prop::sample::select(vec![Replacement::Oldest, Replacement::Random]);
    (1..4usize, 0..3usize, replacement).prop_map(|(used, wired, replacement)| Tlb {
        entries: used + wired,
        wired,
        replacement,
        refill_cycles: 15,
    })
}

fn sets_and_ways() -> impl Strategy<Value = (u64, u32)> {
    (0..3u32, prop::sample::select(vec![1u32, 2, 3, 4, 8])).prop_map(|(log, ways)| (1u64 << log, ways))
}

fn holds() -> impl Strategy<Value = Holds> {
    prop::sample::select(vec![Holds::Data, Holds::Both])
}

fn shape() -> impl Strategy<Value = Shape> {
    let outer =
        prop::collection::vec((sets_and_ways(), holds(), prop::sample::select(vec![1, 2, 4, 32])), 0..=3);
    // More than 64 are kept in another way.
    let cpus = prop::sample::select(vec![1, 2, 4, 4, 96]);
    (cpus, any::<[bool; 3]>(), sets_and_ways(), outer, tlb()).prop_map(
        |(cpus, [is_split, is_parted, has_node_bus], l1, mut outer, tlb)| {
            let (mut inner_holds, mut shared_by) = (if is_split { Holds::Data } else { Holds::Both }, 1);
            let is_code_last = outer.last().is_some_and(|(_, holds, _)| *holds == Holds::Both);
            for ((sets, _), holds, sharing) in &mut outer {
                // Once code is in, it is in all that follow.
                *holds = if inner_holds == Holds::Both { Holds::Both } else { *holds };
                *holds = if is_split && !is_code_last { Holds::Data } else { *holds };
                *sharing = (*sharing).clamp(shared_by, cpus);
                (inner_holds, shared_by) = (*holds, *sharing);
                *sets *= 2;
            }
            let is_even =
                outer.last().is_some_and(|((_, ways), ..)| (*ways as usize).is_multiple_of(shared_by));
            Shape {
                cpus,
                is_split,
                l1,
                outer,
                is_parted: is_parted && shared_by > 1 && is_even,
                has_node_bus,
                tlb,
            }
        },
    )
}

fn machine(shape: &Shape) -> Machine {
    let cache = |name: String, holds, (sets, ways): (u64, u32), shared_by, latency_cycles| Cache {
        name,
        holds,
        size_bytes: sets * u64::from(ways) * LINE_BYTES,
        ways,
        shared_by,
        is_parted: false,
        latency_cycles,
    };
    let first = |name: &str, holds| cache(name.into(), holds, shape.l1, 1, 1);
    let mut caches = match shape.is_split {
        true => vec![first("L1i", Holds::Instructions), first("L1d", Holds::Data)],
        false => vec![first("L1", Holds::Both)],
    };
    caches.extend((2..).zip(&shape.outer).map(|(level, (sets_and_ways, holds, shared_by))| {
        cache(format!("L{level}"), *holds, *sets_and_ways, *shared_by, 5 * level)
    }));
    if let Some(last) = caches.last_mut() {
        last.is_parted = shape.is_parted;
    }
    let mut machine = Machine::load("sgi-4d340").unwrap();
    machine.nodes[0].cpus = shape.cpus;
    machine.line_bytes = LINE_BYTES;
    machine.page_bytes = PAGE_BYTES;
    machine.memory.has_node_bus = shape.has_node_bus;
    machine.frames = Frames::Shuffled;
    machine.tlb = shape.tlb;
    machine.caches = caches;
    machine
}

fn counts(hardware: &Hardware) -> Counts {
    let mut sum = hearth_hardware::Counters::default();
    hardware.ports().iter().for_each(|port| sum += port.counters());
    Counts {
        l1d_misses: sum.l1d_misses,
        l1i_misses: sum.l1i_misses,
        l2_hits: sum.l2_hits,
        llc_hits: sum.llc_hits,
        memory: sum.memory_local + sum.memory_remote,
        cache_to_cache: sum.cache_to_cache,
        upgrades: sum.upgrades,
        invalidations: sum.invalidations,
        write_backs: sum.write_backs,
    }
}

fn reference(hardware: &mut Hardware, cpu: usize, address: u64, access: Access) {
    let port = std::rc::Rc::clone(&hardware.ports()[cpu]);
    let hit = match access {
        Access::Read => port.read(address),
        Access::Write => port.write(address),
        Access::Fetch => port.fetch(address),
    };
    if !hit {
        let _ = hardware.reference(cpu, address, access, Mode::User);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_reference_is_served_as_the_naive_model_says(
        shape in shape(),
        references in prop::collection::vec((0..4usize, 0..160u64, 0..5u8), 1..1500),
    ) {
        let machine = machine(&shape);
        let mut hardware = Hardware::new(&machine, 3).unwrap();
        let mut naive = Naive::new(&machine);
        // Lines of four pages, so that pages come and go in the TLB.
        let base = hardware.segment(4 * PAGE_BYTES, Placement::FirstTouch).base;
        for (number, (cpu, line, kind)) in references.into_iter().enumerate() {
            let cpu = cpu % shape.cpus;
            let offset = line / 40 * PAGE_BYTES + line % 40 * LINE_BYTES;
            let access = [Access::Read, Access::Read, Access::Write, Access::Write, Access::Fetch][kind as usize];
            reference(&mut hardware, cpu, base + offset, access);
            let line = (base + offset) / LINE_BYTES;
            match access {
                Access::Fetch => naive.fetch(cpu, line),
                _ => naive.data(cpu, line, access == Access::Write),
            }
            prop_assert_eq!(&counts(&hardware), &naive.counts, "reference {}", number);
        }
    }
}
