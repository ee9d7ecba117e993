//! Reads a host's topology.

use std::path::Path;

use super::sysfs::{cache_size, list, memory_total, number, numbered, show_cpus, text};
use super::{HostCache, HostCpu, HostError, HostNode, HostTopology};
use crate::Holds;

/// Reads the topology below `root`: `/` for this host, or a copy of another's `/sys` and `/proc`.
///
/// # Errors
/// No CPU is described below `root`, or a list of CPUs is not one.
pub fn read(root: &Path) -> Result<HostTopology, HostError> {
    let system = root.join("sys/devices/system");
    let folder = system.join("cpu");
    let present = numbered(&folder, "cpu");
    let online = list(folder.join("online"))?.unwrap_or_else(|| present.clone());
    if online.is_empty() {
        return Err(HostError::NoCpus { path: folder });
    }
    let mut host = HostTopology {
        model: cpuinfo(root, "model name"),
        offline: present.into_iter().filter(|cpu| !online.contains(cpu)).collect(),
        page_bytes: rustix::param::page_size() as u64,
        ..HostTopology::default()
    };
    let proc_clock_hz = proc_clock_hz(root);
    for id in &online {
        let cpu = read_cpu(&folder.join(format!("cpu{id}")), *id, &online, proc_clock_hz)?;
        host.cpus.push(cpu);
    }
    host.read_caches(&folder, &online)?;
    host.read_nodes(root, &system.join("node"), &online)?;
    Ok(host)
}

/// The first value of a key in `/proc/cpuinfo`.
fn cpuinfo(root: &Path, key: &str) -> Option<String> {
    let text = text(&root.join("proc/cpuinfo"))?;
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    };
    text.lines().find_map(value).filter(|value| !value.is_empty())
}

/// `/proc/cpuinfo` gives the clock of this moment, as `2599.998`.
fn proc_clock_hz(root: &Path) -> Option<u64> {
    let text = cpuinfo(root, "cpu MHz")?;
    let megahertz: f64 = text.parse().ok().filter(|value| (1.0..1e6).contains(value))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded above")]
    let rounded = megahertz.round() as u64;
    Some(rounded * 1_000_000)
}

fn read_cpu(
    folder: &Path,
    id: usize,
    online: &[usize],
    proc_clock_hz: Option<u64>,
) -> Result<HostCpu, HostError> {
    let topology = folder.join("topology");
    let core = match list(topology.join("core_cpus_list"))? {
        Some(core) => Some(core),
        None => list(topology.join("thread_siblings_list"))?,
    };
    let mut core_cpus: Vec<usize> = core.unwrap_or_default();
    core_cpus.retain(|cpu| online.contains(cpu));
    if !core_cpus.contains(&id) {
        core_cpus = vec![id];
    }
    let max_hz = number(&folder.join("cpufreq/cpuinfo_max_freq")).and_then(|khz| khz.checked_mul(1_000));
    let package = number(&topology.join("physical_package_id"));
    Ok(HostCpu { id, core_cpus, package, clock_hz: max_hz.or(proc_clock_hz) })
}

impl HostTopology {
    fn read_caches(&mut self, folder: &Path, online: &[usize]) -> Result<(), HostError> {
        let mut without = Vec::new();
        for cpu in online {
            let caches = folder.join(format!("cpu{cpu}/cache"));
            let mut found = false;
            for index in numbered(&caches, "index") {
                let Some(cache) = read_cache(&caches.join(format!("index{index}")), *cpu, online)? else {
                    continue;
                };
                found = true;
                if !self.caches.contains(&cache) {
                    self.caches.push(cache);
                }
            }
            if !found {
                without.push(*cpu);
            }
        }
        if !without.is_empty() {
            self.notes.push(format!("{}: this kernel describes no cache", show_cpus(&without)));
        }
        let inner_first =
            |cache: &HostCache| (cache.level, cache.holds != Holds::Data, cache.cpus.first().copied());
        self.caches.sort_by_key(inner_first);
        Ok(())
    }

    fn read_nodes(&mut self, root: &Path, folder: &Path, online: &[usize]) -> Result<(), HostError> {
        for id in numbered(folder, "node") {
            let node = folder.join(format!("node{id}"));
            let mut cpus = list(node.join("cpulist"))?.unwrap_or_default();
            cpus.retain(|cpu| online.contains(cpu));
            let distances = text(&node.join("distance")).unwrap_or_default();
            self.nodes.push(HostNode {
                id,
                cpus,
                memory_bytes: memory_total(&node.join("meminfo")).unwrap_or(0),
                distances: distances.split_whitespace().filter_map(|word| word.parse().ok()).collect(),
            });
        }
        if self.nodes.is_empty() {
            let memory_bytes = memory_total(&root.join("proc/meminfo")).unwrap_or(0);
            self.notes.push("this kernel describes no memory nodes: all CPUs are on one".to_owned());
            self.nodes.push(HostNode { id: 0, cpus: online.to_vec(), memory_bytes, distances: vec![10] });
        }
        self.adopt_cpus_without_node(online);
        Ok(())
    }

    fn adopt_cpus_without_node(&mut self, online: &[usize]) {
        let has_node = |cpu: &usize| self.nodes.iter().any(|node| node.cpus.contains(cpu));
        let orphans: Vec<usize> = online.iter().copied().filter(|cpu| !has_node(cpu)).collect();
        if orphans.is_empty() {
            return;
        }
        let first = &mut self.nodes[0];
        self.notes.push(format!("no node holds {}: counted to node {}", show_cpus(&orphans), first.id));
        first.cpus.extend(orphans);
        first.cpus.sort_unstable();
    }
}

/// A cache that lacks its level, kind or size is as good as none.
fn read_cache(folder: &Path, cpu: usize, online: &[usize]) -> Result<Option<HostCache>, HostError> {
    let holds = match text(&folder.join("type")).as_deref() {
        Some("Instruction") => Holds::Instructions,
        Some("Data") => Holds::Data,
        Some("Unified") => Holds::Both,
        _ => return Ok(None),
    };
    let level = number(&folder.join("level")).filter(|level| (1..=9).contains(level));
    let size = cache_size(&folder.join("size")).filter(|size| *size > 0);
    let (Some(level), Some(size_bytes)) = (level, size) else { return Ok(None) };
    let mut cpus = list(folder.join("shared_cpu_list"))?.unwrap_or_default();
    cpus.retain(|cpu| online.contains(cpu));
    if !cpus.contains(&cpu) {
        cpus = vec![cpu];
    }
    let positive = |file: &str| number(&folder.join(file)).filter(|value| *value > 0);
    let (ways, line_bytes) = (positive("ways_of_associativity"), positive("coherency_line_size"));
    Ok(Some(HostCache { level, holds, size_bytes, ways, line_bytes, cpus }))
}
