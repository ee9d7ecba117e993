//! Which cores of a host become CPUs of a machine, and in which order.

use crate::MAX_CPUS;
use crate::host::sysfs::show_cpus;
use crate::host::{HostNode, HostTopology};

/// The cores that become CPUs, by node; within a node those that share a cache are neighbours.
pub(super) struct Cores {
    /// For each node of the host the first CPU of each core that is kept.
    nodes: Vec<Vec<usize>>,
}

impl Cores {
    pub(super) fn of(host: &HostTopology, notes: &mut Vec<String>) -> Self {
        let mut nodes: Vec<Vec<usize>> = host.nodes.iter().map(|node| cores_of_node(host, node)).collect();
        let (cpus, cores) = (host.cpus.len(), host.cores().len());
        if cpus > cores {
            notes.push(format!("{cpus} threads of {cores} cores: each core is one CPU here"));
        }
        if !host.offline.is_empty() {
            notes.push(format!("offline and left out: {}", show_cpus(&host.offline)));
        }
        if cores > MAX_CPUS {
            keep_some(host, &mut nodes);
            let kept: usize = nodes.iter().map(Vec::len).sum();
            notes.push(format!("{kept} of {cores} cores are kept: a machine has at most {MAX_CPUS} CPUs"));
        }
        Cores { nodes }
    }

    pub(super) fn count(&self) -> usize {
        self.nodes.iter().map(Vec::len).sum()
    }

    /// All cores, in the order of the machine's CPUs.
    pub(super) fn all(&self) -> Vec<usize> {
        self.nodes.concat()
    }

    /// The cores of the node at this place in the host's list.
    pub(super) fn of_node(&self, index: usize) -> &[usize] {
        &self.nodes[index]
    }

    /// The numbers of cores of the nodes that have any.
    pub(super) fn counts(&self) -> impl Iterator<Item = usize> {
        self.nodes.iter().map(Vec::len).filter(|count| *count > 0)
    }

    /// How many cores of each node some CPUs are, where there are any.
    pub(super) fn sharing(&self, cpus: &[usize]) -> impl Iterator<Item = usize> {
        let inside = |cores: &Vec<usize>| cores.iter().filter(|core| cpus.contains(core)).count();
        self.nodes.iter().map(inside).filter(|count| *count > 0)
    }
}

/// The first CPU of each core, those that share a cache side by side, the widest caches first.
fn cores_of_node(host: &HostTopology, node: &HostNode) -> Vec<usize> {
    let mut cores: Vec<usize> =
        host.cores().into_iter().map(|core| core[0]).filter(|core| node.cpus.contains(core)).collect();
    cores.sort_by_cached_key(|core| {
        let shared = host.caches.iter().rev().filter(|cache| cache.cpus.contains(core));
        let mut key: Vec<usize> = shared.map(|cache| cache.cpus[0]).collect();
        key.push(*core);
        key
    });
    cores
}

/// Keeps an even share of each node, of whole groups that share the outermost cache where a share
/// holds a group.
fn keep_some(host: &HostTopology, nodes: &mut [Vec<usize>]) {
    let with_cores = nodes.iter().filter(|cores| !cores.is_empty()).count();
    let share = (MAX_CPUS / with_cores.max(1)).max(1);
    let mut left = MAX_CPUS;
    for cores in nodes {
        let group = |core: &usize| {
            let outermost = host.caches.iter().rev().find(|cache| cache.cpus.contains(core));
            outermost.map_or(1, |cache| cores.iter().filter(|core| cache.cpus.contains(core)).count())
        };
        let group = cores.first().map_or(1, group).max(1);
        let whole_groups = if share >= group { share / group * group } else { share };
        cores.truncate(whole_groups.min(left));
        left -= cores.len();
    }
}
