//! The caches of a host, made regular.

use super::cores::Cores;
use super::most_common;
use crate::host::{HostCache, HostTopology};
use crate::units::Bytes;
use crate::{Cache, Holds, MAX_LEVELS};

const MAX_WAYS: u64 = 64;

/// Where the number of ways is not known.
const USUAL_WAYS: u64 = 8;
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
    ways: Option<u64>,
    shared_by: usize,
}

/// The machine's caches, from the CPU outwards.
pub(super) fn of(host: &HostTopology, cores: &Cores, line_bytes: u64, notes: &mut Vec<String>) -> Vec<Cache> {
    let mut caches = first_level(host, cores, line_bytes, notes);
    if host.caches.is_empty() {
        notes.push(
            "no cache is described: 32 KiB, 1 MiB and 2 MiB a core are assumed, the last for each domain"
                .to_owned(),
        );
        append(&mut caches, assumed("L2", 2, 1), cores, line_bytes, notes);
        let domains = host.domains();
        let sharing = domains
            .iter()
            .flat_map(|domain| cores.sharing(domain))
            .flat_map(|cores| std::iter::repeat_n(cores, cores));
        append(&mut caches, assumed("L3", 3, most_common(sharing).unwrap_or(1)), cores, line_bytes, notes);
    }
    for level in outer_levels(host) {
        if let Some(found) = outer_level(host, cores, level, notes) {
            append(&mut caches, found, cores, line_bytes, notes);
        }
    }
    caches
}

/// The levels behind the first.
fn outer_levels(host: &HostTopology) -> Vec<u64> {
    let mut levels: Vec<u64> =
        host.caches.iter().map(|cache| cache.level).filter(|level| *level > 1).collect();
    levels.dedup();
    levels
}

/// A level behind the first, which here holds both.
fn outer_level(host: &HostTopology, cores: &Cores, level: u64, notes: &mut Vec<String>) -> Option<Level> {
    let (instructions, data, both) = (
        of_kind(host, level, Holds::Instructions),
        of_kind(host, level, Holds::Data),
        of_kind(host, level, Holds::Both),
    );
    let found = match (both.is_empty(), data.is_empty()) {
        (false, _) => most_have(cores, &both, notes)?,
        (true, false) if instructions.is_empty() => most_have(cores, &data, notes)?,
        (true, false) => {
            let (code, data) = (most_have(cores, &instructions, notes)?, most_have(cores, &data, notes)?);
            let size_bytes = code.size_bytes + data.size_bytes;
            let name = format!("L{level}");
            notes
                .push(format!("{name} is split: one of {} for both is here in its place", Bytes(size_bytes)));
            Level { name, holds: Holds::Both, size_bytes, ways: None, ..data }
        }
        (true, true) => {
            notes.push(format!("L{level} for instructions alone is left out"));
            return None;
        }
    };
    Some(found)
}

fn of_kind(host: &HostTopology, level: u64, holds: Holds) -> Vec<&HostCache> {
    host.caches.iter().filter(|cache| cache.level == level && cache.holds == holds).collect()
}

/// What most cores have of these caches of one level and kind; nothing where most cores have none.
fn most_have(cores: &Cores, caches: &[&HostCache], notes: &mut Vec<String>) -> Option<Level> {
    let first = caches.first()?;
    let (name, level) = (first.name(), first.level);
    let per_core = caches.iter().flat_map(|cache| {
        let cores = cores.sharing(&cache.cpus).sum();
        std::iter::repeat_n((cache.size_bytes, cache.ways), cores)
    });
    let (size, ways) = most_common(per_core.clone())?;
    let (with, count) = (per_core.count(), cores.count());
    if with < count {
        // Of cores that are alike, all or none.
        let is_kept = 2 * with >= count;
        let what = if is_kept { "all have it here" } else { "it is left out" };
        notes.push(format!("{with} of {count} cores have {name}: {what}"));
        if !is_kept {
            return None;
        }
    }
    let sharing = caches.iter().flat_map(|cache| {
        cores.sharing(&cache.cpus).flat_map(|cores| std::iter::repeat_n(cores, cores)).collect::<Vec<usize>>()
    });
    let shared_by = most_common(sharing.clone())?;
    let size_bytes = size.unwrap_or_else(|| {
        let size_bytes = assumed_bytes(level, shared_by);
        notes.push(format!("the size of {name} is not known: {} is assumed", Bytes(size_bytes)));
        size_bytes
    });
    if caches.iter().any(|cache| (cache.size_bytes, cache.ways) != (size, ways)) {
        notes.push(format!("{name} differs between cores: all have {} here", Bytes(size_bytes)));
    }
    if sharing.clone().any(|other| other != shared_by) {
        notes.push(format!("{name} is shared by different numbers of cores: {shared_by} is the most common"));
    }
    if caches.iter().any(|cache| cores.sharing(&cache.cpus).count() > 1) {
        notes.push(format!("{name} lies across nodes: each node has its own here"));
    }
    Some(Level { name, holds: first.holds, size_bytes, ways, shared_by })
}

/// One cache for both, or one of each; what the host does not describe is assumed.
fn first_level(host: &HostTopology, cores: &Cores, line_bytes: u64, notes: &mut Vec<String>) -> Vec<Cache> {
    let mut private = |holds: Holds| {
        let level = most_have(cores, &of_kind(host, 1, holds), notes)?;
        if level.size_bytes > MAX_FIRST_LEVEL_BYTES {
            notes.push(format!("{} of {} is left out: it is too large", level.name, Bytes(level.size_bytes)));
            return None;
        }
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
    match (host.caches.is_empty(), &instructions, &data) {
        (true, ..) | (false, Some(_), Some(_)) => {}
        (_, None, None) => notes
            .push("the first level is not described: 32 KiB are assumed for code and for data".to_owned()),
        _ => notes.push("a half of the first level is not described: 32 KiB is assumed".to_owned()),
    }
    let half = |name: &str, holds| {
        let level = Level { ways: Some(8), holds, ..assumed(name, 1, 1) };
        fit(level, line_bytes, LATENCY_CYCLES[0], &mut Vec::new())
    };
    let instructions = instructions.unwrap_or_else(|| half("L1i", Holds::Instructions));
    vec![instructions, data.unwrap_or_else(|| half("L1d", Holds::Data))]
}

/// What a level typically is where nothing is known of it.
fn assumed(name: &str, level: u64, shared_by: usize) -> Level {
    let size_bytes = assumed_bytes(level, shared_by);
    Level { name: name.to_owned(), holds: Holds::Both, size_bytes, ways: Some(16), shared_by }
}

fn assumed_bytes(level: u64, shared_by: usize) -> u64 {
    match level {
        1 => 32 << 10,
        2 => 1 << 20,
        _ => (1_u64 << (18 + level)) * (shared_by as u64).next_power_of_two(),
    }
}

/// Appends a level behind the others, or says why it is left out.
fn append(caches: &mut Vec<Cache>, level: Level, cores: &Cores, line_bytes: u64, notes: &mut Vec<String>) {
    let holds_both = caches.last().is_some_and(|inner| inner.holds == Holds::Both);
    if holds_both && level.holds == Holds::Data {
        notes.push(format!("{} holds data only, behind a level for both: it is for both here", level.name));
    }
    let level = Level { holds: if holds_both { Holds::Both } else { level.holds }, ..level };
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
    } else if caches.iter().filter(|cache| cache.holds != Holds::Instructions).count() == MAX_LEVELS {
        notes.push(format!("{} is left out: {MAX_LEVELS} levels can be simulated", cache.name));
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
    let wanted_ways = level.ways.unwrap_or(USUAL_WAYS);
    let loss = |&(sets, ways): &(u64, u64)| (lines - sets * ways, ways.abs_diff(wanted_ways));
    let (sets, ways) = shapes.min_by_key(loss).unwrap_or((1, 1));
    let size_bytes = sets * ways * line_bytes;
    let (name, old, new) = (&level.name, Bytes(level.size_bytes), Bytes(size_bytes));
    match level.ways {
        None => notes.push(format!("{name}: the number of ways is not known: {ways} is assumed")),
        Some(old_ways) if (size_bytes, ways) != (level.size_bytes, old_ways) => notes.push(format!(
            "{name} of {old} in {old_ways} ways is {new} in {ways} here: sets are a power of two"
        )),
        Some(_) => {}
    }
    if level.ways.is_none() && size_bytes != level.size_bytes {
        notes.push(format!("{name} of {old} is {new} here: sets are a power of two"));
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
