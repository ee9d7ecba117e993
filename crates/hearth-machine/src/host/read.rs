//! Reads a host's topology.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use super::sysfs::{cache_size, cpus, list, memory, number, numbered, show_cpus, text};
use super::{HostCache, HostCpu, HostError, HostNode, HostTopology};
use crate::Holds;

/// The page of most machines.
const USUAL_PAGE_BYTES: u64 = 4096;

/// Reads the topology below `root`: `/` for this host, or a copy of another's `/sys` and `/proc`.
///
/// # Errors
/// No CPU is described below `root`, or a set of CPUs is not one.
pub fn read(root: &Path) -> Result<HostTopology, HostError> {
    let system = root.join("sys/devices/system");
    let folder = system.join("cpu");
    let mut notes = Vec::new();
    let present = numbered(&folder, "cpu", &mut notes);
    let online = online(&folder, &present, &mut notes)?;
    if online.is_empty() {
        return Err(HostError::NoCpus { path: folder });
    }
    let mut host = HostTopology {
        model: cpuinfo(root, "model name"),
        offline: present.into_iter().filter(|cpu| !online.contains(cpu)).collect(),
        page_bytes: page_bytes(root, &system.join("node"), &mut notes),
        notes,
        ..HostTopology::default()
    };
    host.read_cpus(&folder, &online)?;
    host.read_clocks(root, &folder);
    host.read_caches(&folder, &online)?;
    host.read_nodes(root, &system.join("node"), &online)?;
    Ok(host)
}

/// The CPUs of the file `online`, of those that have a folder. Without that file those whose own does not say that
/// they are off: some can never go, and have none.
fn online(folder: &Path, present: &[usize], notes: &mut Vec<String>) -> Result<BTreeSet<usize>, HostError> {
    let told = list(folder.join("online"))?.unwrap_or_default();
    if told.is_empty() {
        let is_off = |cpu: &usize| number(&folder.join(format!("cpu{cpu}/online"))) == Some(0);
        return Ok(present.iter().copied().filter(|cpu| !is_off(cpu)).collect());
    }
    let (found, missing): (Vec<usize>, Vec<usize>) =
        told.into_iter().partition(|cpu| present.is_empty() || present.binary_search(cpu).is_ok());
    if !missing.is_empty() {
        notes.push(format!("{}: online, but not described; left out", show_cpus(&missing)));
    }
    Ok(found.into_iter().collect())
}

/// The first value of a key in `/proc/cpuinfo`, without what a terminal would take for a command.
fn cpuinfo(root: &Path, key: &str) -> Option<String> {
    let text = text(&root.join("proc/cpuinfo"))?;
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().replace(char::is_control, "?"))
    };
    text.lines().find_map(value).filter(|value| !value.is_empty())
}

/// The clock that a processor has in its name: `... @ 2.10GHz`.
fn clock_in_name(name: &str) -> Option<u64> {
    let (_, clock) = name.rsplit_once('@')?;
    let clock = clock.trim();
    let (number, unit) = clock.split_at(clock.find(|letter: char| letter.is_ascii_alphabetic())?);
    let hertz = match unit {
        "GHz" => 1e9,
        "MHz" => 1e6,
        _ => return None,
    };
    whole_hertz(number.trim().parse::<f64>().ok()? * hertz)
}

/// `/proc/cpuinfo` gives the clock of this moment, as `2599.998`.
fn clock_of_this_moment(root: &Path) -> Option<u64> {
    let megahertz: f64 = cpuinfo(root, "cpu MHz")?.parse().ok()?;
    whole_hertz(megahertz.round() * 1e6)
}

fn whole_hertz(hertz: f64) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded here")]
    (1e6..1e12).contains(&hertz).then(|| hertz.round() as u64)
}

/// The size of a page: this machine's, or that of the machine below `root`. A copy does not say it, but counts free
/// memory both in pages and in KiB, at nearly the same time.
fn page_bytes(root: &Path, nodes: &Path, notes: &mut Vec<String>) -> u64 {
    if root == Path::new("/") {
        return rustix::param::page_size() as u64;
    }
    let mut folders = vec![root.join("proc")];
    folders.extend(numbered(nodes, "node", &mut Vec::new()).iter().map(|id| nodes.join(format!("node{id}"))));
    let found = folders.iter().find_map(|folder| {
        let (pages, bytes) =
            (free_pages(&folder.join("vmstat"))?, memory(&folder.join("meminfo"), "MemFree:")?);
        let page = bytes.checked_div(pages)?;
        // The nearest power of two.
        let above = page.checked_next_power_of_two()?;
        let nearest = if page < above / 4 * 3 { above / 2 } else { above };
        (1 << 10..=2 << 20).contains(&nearest).then_some(nearest)
    });
    found.unwrap_or_else(|| {
        notes.push("this copy does not tell the size of a page: 4 KiB is assumed".to_owned());
        USUAL_PAGE_BYTES
    })
}

fn free_pages(vmstat: &Path) -> Option<u64> {
    let text = text(vmstat)?;
    text.lines().find_map(|line| line.strip_prefix("nr_free_pages ")?.trim().parse().ok())
}

/// What a socket is known by.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Socket {
    /// The first CPU of a list of its CPUs.
    From(usize),
    /// Its number, where there is no such list; CPUs without either are counted to one.
    Numbered(Option<u64>),
}

impl HostTopology {
    fn read_cpus(&mut self, folder: &Path, online: &BTreeSet<usize>) -> Result<(), HostError> {
        let mut sockets: BTreeMap<Socket, BTreeSet<usize>> = BTreeMap::new();
        let mut in_socket = BTreeSet::new();
        for &id in online {
            let topology = folder.join(format!("cpu{id}/topology"));
            let core = cpus(
                &topology,
                &["core_cpus_list", "thread_siblings_list"],
                &["core_cpus", "thread_siblings"],
            )?;
            let socket = cpus(
                &topology,
                &["package_cpus_list", "core_siblings_list"],
                &["package_cpus", "core_siblings"],
            )?;
            // -1 where firmware gives none.
            let package = number(&topology.join("physical_package_id"));
            self.cpus.push(HostCpu {
                id,
                core_cpus: with(id, core.unwrap_or_default(), online),
                package,
                clock_hz: None,
            });
            if in_socket.insert(id) {
                let (socket, cpus) = match socket {
                    Some(cpus) => (Socket::From(id), with(id, cpus, online)),
                    None => (Socket::Numbered(package), vec![id]),
                };
                let new = cpus.into_iter().filter(|cpu| *cpu == id || in_socket.insert(*cpu));
                sockets.entry(socket).or_default().extend(new);
            }
        }
        self.sockets = sockets.into_values().map(|cpus| cpus.into_iter().collect()).collect();
        self.sockets.sort_unstable();
        Ok(())
    }

    fn read_clocks(&mut self, root: &Path, folder: &Path) {
        let max_hz =
            |id: usize| number(&folder.join(format!("cpu{id}/cpufreq/cpuinfo_max_freq")))?.checked_mul(1_000);
        for cpu in &mut self.cpus {
            cpu.clock_hz = max_hz(cpu.id);
        }
        if self.cpus.iter().any(|cpu| cpu.clock_hz.is_some()) {
            return;
        }
        let named = self.model.as_deref().and_then(clock_in_name);
        let clock_hz = named.or_else(|| clock_of_this_moment(root));
        if clock_hz.is_some() && named.is_none() {
            self.notes.push(
                "the clock is that of the moment of reading: this kernel tells no highest one".to_owned(),
            );
        }
        self.cpus.iter_mut().for_each(|cpu| cpu.clock_hz = clock_hz);
    }

    fn read_caches(&mut self, folder: &Path, online: &BTreeSet<usize>) -> Result<(), HostError> {
        let mut without = Vec::new();
        let mut seen = HashSet::new();
        for cpu in online {
            let caches = folder.join(format!("cpu{cpu}/cache"));
            let mut found = false;
            for index in numbered(&caches, "index", &mut self.notes) {
                let folder = caches.join(format!("index{index}"));
                let shared = cpus(&folder, &["shared_cpu_list"], &["shared_cpu_map"])?.unwrap_or_default();
                let shared = (index, with(*cpu, shared, online));
                // Each of its CPUs describes a cache alike: it is read once.
                if seen.contains(&shared) {
                    found = true;
                } else if let Some(cache) = read_cache(&folder, shared.1.clone()) {
                    found = true;
                    self.caches.push(cache);
                    seen.insert(shared);
                }
            }
            if !found {
                without.push(*cpu);
            }
        }
        if !without.is_empty() {
            self.notes.push(format!("{}: this kernel describes no cache", show_cpus(&without)));
        }
        if self.caches.iter().any(|cache| cache.size_bytes.is_none()) {
            self.notes
                .push("this kernel does not tell the size of each cache, only who shares it".to_owned());
        }
        let inner_first =
            |cache: &HostCache| (cache.level, cache.holds != Holds::Data, cache.cpus.first().copied());
        self.caches.sort_by_key(inner_first);
        Ok(())
    }

    fn read_nodes(&mut self, root: &Path, folder: &Path, online: &BTreeSet<usize>) -> Result<(), HostError> {
        let mut node_of: BTreeMap<usize, usize> = BTreeMap::new();
        let mut repeated = BTreeSet::new();
        for id in numbered(folder, "node", &mut self.notes) {
            let node = folder.join(format!("node{id}"));
            let mut cpus = cpus(&node, &["cpulist"], &["cpumap"])?.unwrap_or_default();
            // A CPU has one node: the first that has it.
            cpus.retain(|cpu| online.contains(cpu));
            repeated.extend(cpus.iter().filter(|cpu| node_of.contains_key(cpu)));
            cpus.retain(|cpu| *node_of.entry(*cpu).or_insert(id) == id);
            let distances = text(&node.join("distance")).unwrap_or_default();
            self.nodes.push(HostNode {
                id,
                cpus,
                memory_bytes: memory(&node.join("meminfo"), "MemTotal:"),
                distances: distances.split_whitespace().filter_map(|word| word.parse().ok()).collect(),
            });
        }
        if !repeated.is_empty() {
            let cpus: Vec<usize> = repeated.into_iter().collect();
            self.notes.push(format!("several nodes hold {}: counted to the first of them", show_cpus(&cpus)));
        }
        if self.nodes.is_empty() {
            self.notes.push("this kernel describes no memory nodes: all CPUs are on one".to_owned());
            let cpus = online.iter().copied().collect();
            self.nodes.push(HostNode { id: 0, cpus, memory_bytes: None, distances: vec![10] });
            node_of.extend(online.iter().map(|cpu| (*cpu, 0)));
        }
        self.adopt_cpus_without_node(
            online.iter().copied().filter(|cpu| !node_of.contains_key(cpu)).collect(),
        );
        self.share_memory(memory(&root.join("proc/meminfo"), "MemTotal:"));
        Ok(())
    }

    fn adopt_cpus_without_node(&mut self, orphans: Vec<usize>) {
        if orphans.is_empty() {
            return;
        }
        let first = &mut self.nodes[0];
        self.notes.push(format!("no node holds {}: counted to node {}", show_cpus(&orphans), first.id));
        first.cpus.extend(orphans);
        first.cpus.sort_unstable();
    }

    /// Where nodes do not say how much memory they have, what the whole machine has beyond the others' is shared
    /// out among them: equally, among those with CPUs where there are any.
    fn share_memory(&mut self, total_bytes: Option<u64>) {
        let known: u64 = self.nodes.iter().filter_map(|node| node.memory_bytes).fold(0, u64::saturating_add);
        let Some(left_bytes) = total_bytes.map(|total| total.saturating_sub(known)) else { return };
        let unknown = |node: &HostNode| node.memory_bytes.is_none();
        let any_cpus = self.nodes.iter().any(|node| unknown(node) && !node.cpus.is_empty());
        let shares = |node: &HostNode| unknown(node) && (!any_cpus || !node.cpus.is_empty());
        let count = self.nodes.iter().filter(|node| shares(node)).count();
        if count > 1 {
            self.notes.push(format!(
                "{count} nodes do not tell their memory: the machine's is shared out equally among them"
            ));
        }
        for index in 0..self.nodes.len() {
            if shares(&self.nodes[index]) {
                self.nodes[index].memory_bytes = Some(left_bytes / count as u64);
            }
        }
    }
}

/// The online CPUs of a set, with `id` among them.
fn with(id: usize, mut cpus: Vec<usize>, online: &BTreeSet<usize>) -> Vec<usize> {
    cpus.retain(|cpu| online.contains(cpu));
    if cpus.contains(&id) { cpus } else { vec![id] }
}

/// A cache that lacks its level or kind is as good as none.
fn read_cache(folder: &Path, cpus: Vec<usize>) -> Option<HostCache> {
    let holds = match text(&folder.join("type")).as_deref() {
        Some("Instruction") => Holds::Instructions,
        Some("Data") => Holds::Data,
        Some("Unified") => Holds::Both,
        _ => return None,
    };
    let level = number(&folder.join("level")).filter(|level| (1..=9).contains(level))?;
    let positive = |file: &str| number(&folder.join(file)).filter(|value| *value > 0);
    Some(HostCache {
        level,
        holds,
        size_bytes: cache_size(&folder.join("size")).filter(|size| *size > 0),
        ways: positive("ways_of_associativity"),
        line_bytes: positive("coherency_line_size"),
        cpus,
    })
}
