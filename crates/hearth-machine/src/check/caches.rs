//! Which caches can be had: their shapes, their order, and who shares them.

use super::{GIB, MAX_CYCLES, cycles, fault, neighbours};
use crate::located::{Fault, name, within};
use crate::units::Bytes;
use crate::{Cache, Holds, Machine};

const MAX_WAYS: u32 = 64;

/// The most levels of cache: the halves of a split one are one.
pub const MAX_LEVELS: usize = 4;

/// Capacity of all instances of all caches: the simulator keeps some bytes for each line.
const MAX_TOTAL_BYTES: u64 = 4 * GIB;

pub(super) fn check(machine: &Machine) -> Result<(), Fault> {
    let mut total_bytes = 0;
    for (index, cache) in machine.caches.iter().enumerate() {
        check_shape(machine, index, cache)?;
        check_sharing(machine, index, cache)?;
        total_bytes += cache.size_bytes * (machine.cpus() / cache.shared_by) as u64;
        if total_bytes > MAX_TOTAL_BYTES {
            let what = format!("with this level all caches together hold {}", Bytes(total_bytes));
            return fault(key(index, "size"), what, format!("leave at most {}", Bytes(MAX_TOTAL_BYTES)));
        }
    }
    check_first_level(&machine.caches)?;
    check_count(&machine.caches)?;
    check_order(&machine.caches)
}

fn check_count(caches: &[Cache]) -> Result<(), Fault> {
    let first = if caches[0].holds == Holds::Both { 1 } else { 2 };
    let fifth = first + MAX_LEVELS - 1;
    match caches.get(fifth) {
        None => Ok(()),
        Some(cache) => {
            let what = format!("{} is the fifth level", cache.name);
            fault(key(fifth, "name"), what, format!("leave at most {MAX_LEVELS} levels"))
        }
    }
}

fn key(index: usize, part: &str) -> String {
    format!("cache[{index}].{part}")
}

/// Size, ways and line make a power of two of sets; names differ.
fn check_shape(machine: &Machine, index: usize, cache: &Cache) -> Result<(), Fault> {
    name(key(index, "name"), &cache.name)?;
    if machine.caches[..index].iter().any(|earlier| earlier.name == cache.name) {
        let what = format!("there are two caches of the name {}", cache.name);
        return fault(key(index, "name"), what, "give each its own name");
    }
    within(key(index, "ways"), cache.ways, 1, MAX_WAYS, std::convert::identity)?;
    within(key(index, "latency"), cache.latency_cycles, 1, MAX_CYCLES, cycles)?;
    let set_bytes = u64::from(cache.ways) * machine.line_bytes;
    within(key(index, "size"), cache.size_bytes, set_bytes, GIB, Bytes)?;
    let sets = cache.size_bytes / set_bytes;
    if cache.size_bytes.is_multiple_of(set_bytes) && sets.is_power_of_two() {
        return Ok(());
    }
    let (size, ways, line) = (Bytes(cache.size_bytes), cache.ways, Bytes(machine.line_bytes));
    let what = format!("{size}, {ways}-way, with {line} lines, is not a power of two of sets");
    let sizes = neighbours((cache.size_bytes / set_bytes + 1).max(2), |sets| Bytes(sets * set_bytes));
    fault(key(index, "size"), what, format!("write {sizes}, or change `ways`"))
}

/// Each instance serves as many CPUs as every other, all of one node.
fn check_sharing(machine: &Machine, index: usize, cache: &Cache) -> Result<(), Fault> {
    let key = || key(index, "shared_by");
    let cpus = machine.cpus();
    if cache.shared_by == 0 || !cpus.is_multiple_of(cache.shared_by) {
        let what = format!("{cpus} CPUs cannot be dealt out in groups of {}", cache.shared_by);
        return fault(key(), what, format!("write a divisor of {cpus}; 1 is a private cache"));
    }
    if cache.is_parted {
        check_parts(machine, index, cache)?;
    }
    match machine.nodes.iter().position(|node| !node.cpus.is_multiple_of(cache.shared_by)) {
        None => Ok(()),
        Some(node) => {
            let (shared_by, cpus) = (cache.shared_by, machine.nodes[node].cpus);
            let what = format!("a cache of {shared_by} CPUs would lie across nodes: node {node} has {cpus}");
            fault(key(), what, "write a divisor of the CPUs of every node")
        }
    }
}

/// Ways can be parted among CPUs that share the last level, a way each or more.
fn check_parts(machine: &Machine, index: usize, cache: &Cache) -> Result<(), Fault> {
    let (ways, cpus) = (cache.ways, cache.shared_by);
    let what = match index + 1 == machine.caches.len() {
        false => format!("{} is not the last level, and its ways cannot be parted", cache.name),
        true if cpus == 1 => format!("{} is no CPU's but one's, and its ways cannot be parted", cache.name),
        true if !(ways as usize).is_multiple_of(cpus) => {
            format!("{ways} ways cannot be parted equally among {cpus} CPUs")
        }
        true => return Ok(()),
    };
    fault(key(index, "parted"), what, "leave `parted` out, or change `ways` and `shared_by`")
}

/// The first level is one cache for both, or one of instructions and one of data; it is private.
fn check_first_level(caches: &[Cache]) -> Result<(), Fault> {
    let first = match caches {
        [] => return fault("cache", "the machine has no cache", "add a [[cache]]"),
        [one, ..] if one.holds == Holds::Both => &caches[..1],
        [one, two, ..] if is_split(one, two) => &caches[..2],
        _ => {
            let what =
                "the first level is neither one cache for both, nor one for instructions and one for data";
            return fault(
                "cache[0].holds",
                what,
                "begin with `holds = \"both\"`, or with both halves of a split",
            );
        }
    };
    match first.iter().position(|cache| cache.shared_by != 1) {
        None => Ok(()),
        Some(index) => {
            let what = format!("the first level is shared by {} CPUs", first[index].shared_by);
            fault(key(index, "shared_by"), what, "leave it out: the first level is private")
        }
    }
}

fn is_split(one: &Cache, two: &Cache) -> bool {
    matches!((one.holds, two.holds), (Holds::Instructions, Holds::Data) | (Holds::Data, Holds::Instructions))
}

/// Behind the first level each cache is larger, slower and at least as widely shared as what it
/// backs, and holds no less.
fn check_order(caches: &[Cache]) -> Result<(), Fault> {
    let first = if caches[0].holds == Holds::Both { 1 } else { 2 };
    for (index, outer) in caches.iter().enumerate().skip(first) {
        if outer.holds == Holds::Instructions {
            let what = "a cache behind the first level holds instructions only";
            return fault(key(index, "holds"), what, "write \"both\" or \"data\"");
        }
        let inner = &caches[index - 1];
        if outer.holds == Holds::Data && inner.holds == Holds::Both {
            let what = format!("{} holds data only, and {} before it holds both", outer.name, inner.name);
            return fault(key(index, "holds"), what, "write \"both\"");
        }
        let backs = |inner: &&Cache| outer.holds == Holds::Both || inner.holds != Holds::Instructions;
        for inner in caches[..index].iter().filter(backs) {
            check_pair(index, inner, outer)?;
        }
    }
    Ok(())
}

fn check_pair(index: usize, inner: &Cache, outer: &Cache) -> Result<(), Fault> {
    if outer.size_bytes <= inner.size_bytes {
        let (size, inner_size) = (Bytes(outer.size_bytes), Bytes(inner.size_bytes));
        let what = format!("{} with {size} is no larger than {} with {inner_size}", outer.name, inner.name);
        return fault(key(index, "size"), what, "sizes grow outwards: enlarge it, or leave it out");
    }
    if outer.latency_cycles <= inner.latency_cycles {
        let (slow, fast) = (outer.latency_cycles, inner.latency_cycles);
        let what = format!("{} at {slow} cycles is no slower than {} at {fast}", outer.name, inner.name);
        return fault(key(index, "latency"), what, "latencies grow outwards: raise it");
    }
    if !outer.shared_by.is_multiple_of(inner.shared_by) {
        let (wide, narrow) = (outer.shared_by, inner.shared_by);
        let what =
            format!("{} is shared by {wide} CPUs, and {} before it by {narrow}", outer.name, inner.name);
        return fault(key(index, "shared_by"), what, format!("write a multiple of {narrow}"));
    }
    Ok(())
}
