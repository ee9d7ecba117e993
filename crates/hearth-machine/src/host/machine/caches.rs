//! The caches of a host, made regular.

use super::cores::Cores;
use super::most_common;
use crate::host::{HostCache, HostTopology};
use crate::units::Bytes;
use crate::{Cache, Holds};

const MAX_WAYS: u64 = 64;
const MAX_TOTAL_BYTES: u64 = 4 << 30;

/// A first level beyond this is a mistake of what describes it.
const MAX_FIRST_LEVEL_BYTES: u64 = 4 << 20;

/// Typical latencies of levels 1, 2, 3 and 4.
const LATENCY_CYCLES: [u32; 4] = [4, 14, 50, 120];

/// One level of one kind as most cores have it.
struct Level {
    name: String,
    holds: Holds,
    size_bytes: u64,
    ways: u64,
    shared_by: usize,
}

/// The machine's caches, from the CPU outwards.
pub(super) fn of(host: &HostTopology, cores: &Cores, line_bytes: u64, notes: &mut Vec<String>) -> Vec<Cache> {
    let mut caches = first_level(host, cores, line_bytes, notes);
    let outer: Vec<u64> = outer_levels(host);
    if host.caches.is_empty() {
        notes.push("no cache is described: 32 KiB, 1 MiB and 2 MiB a core for all are assumed".to_owned());
        append(&mut caches, assumed_second_level(), cores, line_bytes, notes);
        append(&mut caches, assumed_third_level(cores), cores, line_bytes, notes);
    }
    for level in outer {
        if let Some(found) = find(host, cores, level, Holds::Both, notes) {
            append(&mut caches, found, cores, line_bytes, notes);
        }
    }
    caches
}

/// The levels behind the first that hold both.
fn outer_levels(host: &HostTopology) -> Vec<u64> {
    let unified = host.caches.iter().filter(|cache| cache.level > 1 && cache.holds == Holds::Both);
    let mut levels: Vec<u64> = unified.map(|cache| cache.level).collect();
    levels.dedup();
    levels
}

/// What most cores have at a level, where any has.
fn find(
    host: &HostTopology,
    cores: &Cores,
    level: u64,
    holds: Holds,
    notes: &mut Vec<String>,
) -> Option<Level> {
    let of_level = |cache: &&HostCache| cache.level == level && cache.holds == holds;
    let caches: Vec<&HostCache> = host.caches.iter().filter(of_level).collect();
    let per_core = caches.iter().flat_map(|cache| {
        let cores = cores.sharing(&cache.cpus).sum();
        std::iter::repeat_n((cache.size_bytes, cache.ways), cores)
    });
    let (size_bytes, ways) = most_common(per_core)?;
    let name = caches[0].name();
    if caches.iter().any(|cache| (cache.size_bytes, cache.ways) != (size_bytes, ways)) {
        notes.push(format!("{name} differs between cores: all have {} here", Bytes(size_bytes)));
    }
    let sharing = caches.iter().flat_map(|cache| {
        cores.sharing(&cache.cpus).flat_map(|cores| std::iter::repeat_n(cores, cores)).collect::<Vec<usize>>()
    });
    let shared_by = most_common(sharing.clone())?;
    if sharing.clone().any(|other| other != shared_by) {
        notes.push(format!("{name} is shared by different numbers of cores: {shared_by} is the most common"));
    }
    if caches.iter().any(|cache| cores.sharing(&cache.cpus).count() > 1) {
        notes.push(format!("{name} lies across nodes: each node has its own here"));
    }
    Some(Level { name, holds, size_bytes, ways: ways.unwrap_or(8), shared_by })
}

/// One cache for both, or one of each; what the host does not describe is assumed.
fn first_level(host: &HostTopology, cores: &Cores, line_bytes: u64, notes: &mut Vec<String>) -> Vec<Cache> {
    let mut private = |holds: Holds| {
        let level =
            find(host, cores, 1, holds, notes).filter(|level| level.size_bytes <= MAX_FIRST_LEVEL_BYTES)?;
        if level.shared_by > 1 {
            notes.push(format!("{} is shared by {} cores: it is private here", level.name, level.shared_by));
        }
        Some(fit(Level { shared_by: 1, ..level }, line_bytes, LATENCY_CYCLES[0], notes))
    };
    let (data, instructions) = (private(Holds::Data), private(Holds::Instructions));
    if data.is_none()
        && instructions.is_none()
        && let Some(both) = private(Holds::Both)
    {
        return vec![both];
    }
    if !host.caches.is_empty() && (data.is_none() || instructions.is_none()) {
        notes.push("a half of the first level is not described: 32 KiB is assumed".to_owned());
    }
    let mut assumed = |name: &str, holds| {
        let level = Level { name: name.to_owned(), holds, size_bytes: 32 << 10, ways: 8, shared_by: 1 };
        fit(level, line_bytes, LATENCY_CYCLES[0], notes)
    };
    let instructions = instructions.unwrap_or_else(|| assumed("L1i", Holds::Instructions));
    vec![instructions, data.unwrap_or_else(|| assumed("L1d", Holds::Data))]
}

fn assumed_second_level() -> Level {
    Level { name: "L2".to_owned(), holds: Holds::Both, size_bytes: 1 << 20, ways: 16, shared_by: 1 }
}

fn assumed_third_level(cores: &Cores) -> Level {
    let shared_by = cores.counts().max().unwrap_or(1);
    let size_bytes = (2 << 20) * (shared_by as u64).next_power_of_two();
    Level { name: "L3".to_owned(), holds: Holds::Both, size_bytes, ways: 16, shared_by }
}

/// Appends a level behind the others, or says why it is left out.
fn append(caches: &mut Vec<Cache>, level: Level, cores: &Cores, line_bytes: u64, notes: &mut Vec<String>) {
    let inner_shared_by = caches.last().map_or(1, |cache| cache.shared_by);
    let shared_by = regular_sharing(level.shared_by, inner_shared_by, cores);
    if shared_by != level.shared_by {
        let name = &level.name;
        notes.push(format!(
            "{name}: {} cores do not fit into the nodes: {shared_by} share one here",
            level.shared_by
        ));
    }
    let inner_bytes = caches.iter().map(|cache| cache.size_bytes).max().unwrap_or(0);
    let cache = fit(Level { shared_by, ..level }, line_bytes, slower_than(caches), notes);
    let total = |cache: &Cache| cache.size_bytes * (cores.count() / cache.shared_by) as u64;
    if cache.size_bytes <= inner_bytes {
        notes.push(format!("{} is left out: it is no larger than the level before", cache.name));
    } else if caches.iter().map(total).sum::<u64>() + total(&cache) > MAX_TOTAL_BYTES {
        notes.push(format!("{} is left out: all caches together would exceed 4 GiB", cache.name));
    } else {
        caches.push(cache);
    }
}

/// A typical latency of the level behind these.
fn slower_than(caches: &[Cache]) -> u32 {
    let inner = caches.iter().map(|cache| cache.latency_cycles).max().unwrap_or(0);
    LATENCY_CYCLES.into_iter().find(|cycles| *cycles > inner).unwrap_or(2 * inner)
}

/// The largest number up to `wanted` that divides the cores of every node and is a multiple of
/// what shares the level before.
fn regular_sharing(wanted: usize, inner: usize, cores: &Cores) -> usize {
    let fits = |shared_by: &usize| {
        shared_by.is_multiple_of(inner) && cores.counts().all(|count| count.is_multiple_of(*shared_by))
    };
    (inner..=wanted).rev().find(fits).unwrap_or(inner)
}

/// The nearest shape whose sets are a power of two.
fn fit(level: Level, line_bytes: u64, latency_cycles: u32, notes: &mut Vec<String>) -> Cache {
    let wanted_bytes = level.size_bytes.clamp(line_bytes, 1 << 30);
    let lines = wanted_bytes / line_bytes;
    let shapes = (0..=lines.ilog2()).map(|shift| (1_u64 << shift, (lines >> shift).min(MAX_WAYS)));
    let loss = |&(sets, ways): &(u64, u64)| (lines - sets * ways, ways.abs_diff(level.ways));
    let (sets, ways) = shapes.min_by_key(loss).unwrap_or((1, 1));
    let size_bytes = sets * ways * line_bytes;
    if (size_bytes, ways) != (level.size_bytes, level.ways) {
        let (name, old_ways) = (&level.name, level.ways);
        let (old, new) = (Bytes(level.size_bytes), Bytes(size_bytes));
        notes.push(format!(
            "{name} of {old} in {old_ways} ways is {new} in {ways} here: sets are a power of two"
        ));
    }
    Cache {
        name: level.name,
        holds: level.holds,
        size_bytes,
        ways: u32::try_from(ways).unwrap_or(1),
        shared_by: level.shared_by,
        is_parted: false,
        latency_cycles,
    }
}
