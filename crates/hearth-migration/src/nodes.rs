//! The memory nodes of this machine, and which of them is near to each CPU.

use crate::Error;
use hearth_machine::host::{self, HostTopology};
use hearth_machine::list;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

/// The kernel's number of a memory node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

/// The nodes that have memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    with_memory: Vec<NodeId>,
    /// The node with memory that is nearest to each CPU, by the CPU's number.
    near: Vec<Option<NodeId>>,
    /// What the kernel said when this was read.
    seen: String,
}

impl Nodes {
    /// Reads the nodes below `root`.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let seen = Self::look(root);
        Ok(Self { seen, ..Self::of(&host::read(root)?) })
    }

    /// Whether nodes or CPUs have come or gone since.
    pub fn are_stale(&self, root: &Path) -> bool {
        Self::look(root) != self.seen
    }

    fn look(root: &Path) -> String {
        let files = ["node/has_memory", "node/has_cpu", "node/online", "cpu/online"];
        let read = |file| fs::read_to_string(root.join("sys/devices/system").join(file)).unwrap_or_default();
        files.map(read).concat()
    }

    fn of(host: &HostTopology) -> Self {
        let with_memory: Vec<NodeId> = host
            .nodes
            .iter()
            .filter(|node| node.memory_bytes != Some(0))
            .map(|node| NodeId(node.id as u32))
            .collect();
        let mut near = vec![None; host.cpus.iter().map(|cpu| cpu.id + 1).max().unwrap_or(0)];
        for node in &host.nodes {
            // A node is its own nearest one; without memory, the firmware says which is.
            let distance = |other: &(usize, &host::HostNode)| {
                let itself = if other.1.id == node.id { 0 } else { u64::MAX };
                (node.distances.get(other.0).copied().unwrap_or(itself), other.1.id)
            };
            let others = host.nodes.iter().enumerate().filter(|(_, other)| other.memory_bytes != Some(0));
            let nearest = others.min_by_key(distance).map(|(_, other)| NodeId(other.id as u32));
            for &cpu in &node.cpus {
                if let Some(near) = near.get_mut(cpu) {
                    *near = nearest;
                }
            }
        }
        Self { with_memory, near, seen: String::new() }
    }

    /// Nodes with memory, in order.
    pub fn with_memory(&self) -> &[NodeId] {
        &self.with_memory
    }

    /// The same as numbers, ascending.
    pub(super) fn numbers(&self) -> Vec<usize> {
        let mut numbers: Vec<usize> = self.with_memory.iter().map(|node| node.0 as usize).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The node with memory that is nearest to a CPU.
    pub fn near(&self, cpu: usize) -> Option<NodeId> {
        self.near.get(cpu).copied().flatten()
    }

    /// Nodes with memory that are near to some CPU: where pages may follow to.
    pub fn near_cpus(&self) -> BTreeSet<NodeId> {
        self.near.iter().copied().flatten().collect()
    }

    /// Whether pages can be nearer to one CPU than to another.
    pub fn differ(&self) -> bool {
        self.with_memory.len() > 1
    }
}

/// Reads a list such as `0-3,8`; `None` if it is none.
pub(crate) fn parse_list(text: &str) -> Option<BTreeSet<u32>> {
    const GREATEST: u32 = 4096;
    let number = |node| u32::try_from(node).ok().filter(|node| *node <= GREATEST);
    list::parse_list(text.trim())?.into_iter().map(number).collect()
}

/// The nodes on which a process may have memory (cpusets); `None` if it is gone.
pub fn allowed(pid: i32) -> Option<BTreeSet<NodeId>> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let list = text.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"))?;
    Some(parse_list(list)?.into_iter().map(NodeId).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_machine::host::{HostCpu, HostNode};
    use proptest::prelude::*;

    fn host(nodes: &[(usize, &[usize], u64, &[u64])]) -> HostTopology {
        let cpu = |id| HostCpu { id, core_cpus: vec![id], package: None, clock_hz: None };
        HostTopology {
            cpus: nodes.iter().flat_map(|(_, cpus, ..)| cpus.iter().copied()).map(cpu).collect(),
            nodes: nodes
                .iter()
                .map(|&(id, cpus, memory_bytes, distances)| HostNode {
                    id,
                    cpus: cpus.to_vec(),
                    memory_bytes: Some(memory_bytes),
                    distances: distances.to_vec(),
                })
                .collect(),
            ..HostTopology::default()
        }
    }

    #[test]
    fn a_cpu_without_memory_of_its_own_is_near_to_the_nearest_that_has_some() {
        let shape = [
            (0, &[0, 1][..], 1 << 30, &[10, 40, 20][..]),
            (2, &[4, 5][..], 0, &[40, 10, 20][..]),
            (3, &[][..], 1 << 20, &[20, 20, 10][..]),
        ];
        let nodes = Nodes::of(&host(&shape));
        assert_eq!(nodes.with_memory(), [NodeId(0), NodeId(3)]);
        assert_eq!(
            (nodes.near(1), nodes.near(4), nodes.near(2), nodes.near(99)),
            (Some(NodeId(0)), Some(NodeId(3)), None, None)
        );
        assert!(nodes.differ());
    }

    #[test]
    fn a_node_that_no_cpu_is_near_to_draws_no_pages() {
        let nodes = Nodes::of(&host(&[(0, &[0][..], 1, &[10, 20][..]), (1, &[][..], 1, &[20, 10][..])]));
        assert_eq!(nodes.near_cpus(), BTreeSet::from([NodeId(0)]));
    }

    #[test]
    fn one_node_without_distances_is_near_to_all() {
        let nodes = Nodes::of(&host(&[(0, &[0, 3][..], 1, &[][..])]));
        assert_eq!((nodes.near(3), nodes.differ()), (Some(NodeId(0)), false));
    }

    #[test]
    fn a_node_that_goes_offline_makes_what_was_read_stale() {
        let folder = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let path = folder.path().join("sys/devices/system").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("cpu/online", "0-1\n");
        put("node/has_memory", "0-1\n");
        for node in ["node0", "node1"] {
            put(&format!("node/{node}/cpulist"), "0-1\n");
            put(&format!("node/{node}/meminfo"), "Node 0 MemTotal: 8 kB\n");
        }
        let nodes = Nodes::read(folder.path()).unwrap();
        assert!(nodes.differ() && !nodes.are_stale(folder.path()));
        put("node/has_memory", "0\n");
        put("node/node1/meminfo", "Node 1 MemTotal: 0 kB\n");
        assert!(nodes.are_stale(folder.path()));
        let nodes = Nodes::read(folder.path()).unwrap();
        assert!(!nodes.differ() && nodes.numbers() == [0]);
    }

    #[test]
    fn this_machine_has_a_node_with_memory() {
        let nodes = Nodes::read(Path::new("/")).unwrap();
        assert!(!nodes.with_memory().is_empty() && !nodes.are_stale(Path::new("/")));
        assert!(allowed(std::process::id() as i32).is_none_or(|nodes| !nodes.is_empty()));
    }

    #[test]
    fn lists_are_read() {
        assert_eq!(parse_list("0-1,8\n"), Some(BTreeSet::from([0, 1, 8])));
        assert_eq!(parse_list(""), Some(BTreeSet::new()));
        for wrong in ["a", "3-1", "0-", "0-4294967295"] {
            assert_eq!(parse_list(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_list_is_too_strange(text in "[0-9,\\- x]{0,40}") {
            parse_list(&text);
        }
    }
}
