//! What a task pays that moves to another CPU.

use crate::host::HostTopology;
use crate::{Holds, Machine};

/// CPU time that a task loses when it moves to a CPU whose caches have nothing of it: a private cache, filled anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveCosts {
    /// To another CPU of its last-level cache; 0 where no cache is shared.
    pub cpu_ns: u64,
    /// To another last-level cache of its memory node.
    pub cache_ns: u64,
    /// To another node, where its memory stays behind.
    pub node_ns: u64,
}

impl MoveCosts {
    /// The moves that there are on a machine with so many last-level caches and memory nodes, nearest first: where to,
    /// and the cost; nothing for one that the machine does not have.
    pub fn of(self, caches: usize, nodes: usize) -> [Option<(&'static str, u64)>; 3] {
        [
            (self.cpu_ns > 0).then_some(("another CPU", self.cpu_ns)),
            (caches > nodes).then_some(("another cache", self.cache_ns)),
            (nodes > 1).then_some(("another node", self.node_ns)),
        ]
    }
}

/// Of a host that has not been measured: memory serves a line in some 100 ns, a last-level cache in some 30, and a
/// core has a few lines under way at a time.
const HOST_LINE_NS: u64 = 30;
const HOST_CACHED_LINE_NS: u64 = 10;
const HOST_LINE_BYTES: u64 = 64;
/// Of a host that does not say how large its private caches are.
const HOST_PRIVATE_BYTES: u64 = 1 << 20;
/// The firmware's distance of a node from itself.
const OWN_DISTANCE: u64 = 10;
/// Whatever a host says of its caches and distances, costs are between these.
const LEAST_NS: u64 = 50_000;
const MOST_NS: u64 = 10_000_000;

impl Machine {
    /// As its caches and latencies have it, when one line is served after the other.
    pub fn move_costs(&self) -> MoveCosts {
        let holds_data = || self.caches.iter().filter(|cache| cache.holds != Holds::Instructions);
        let private = holds_data().filter(|cache| cache.shared_by == 1).map(|cache| cache.size_bytes).max();
        let shared = holds_data().filter(|cache| cache.shared_by > 1).map(|cache| cache.latency_cycles).min();
        let lines = private.unwrap_or(0) / self.line_bytes;
        let ns = |cycles: u32| lines * u64::from(cycles) * self.cycle_ps() / 1000;
        let cache_ns = ns(self.memory.local_cycles).max(1);
        MoveCosts {
            cpu_ns: shared.map_or(0, ns).min(cache_ns),
            cache_ns,
            node_ns: ns(self.memory.remote_cycles).max(cache_ns),
        }
    }
}

impl HostTopology {
    /// How large a core's own caches are: the greatest that no other core shares; a guess if the host does not say.
    pub fn private_bytes(&self) -> u64 {
        let is_private =
            |cpus: &[usize]| self.cores().iter().any(|core| cpus.iter().all(|cpu| core.contains(cpu)));
        let caches = self.caches.iter().filter(|cache| cache.holds != Holds::Instructions);
        let sizes = caches.filter(|cache| is_private(&cache.cpus)).filter_map(|cache| cache.size_bytes);
        sizes.max().unwrap_or(HOST_PRIVATE_BYTES)
    }

    /// By its caches' sizes and its nodes' distances; nothing is measured.
    pub fn move_costs(&self) -> MoveCosts {
        let lines = self.private_bytes() / HOST_LINE_BYTES;
        let shares_caches = self.domains().iter().any(|domain| domain.len() > 1);
        let cpu_ns = lines.saturating_mul(HOST_CACHED_LINE_NS);
        let cache_ns = lines.saturating_mul(HOST_LINE_NS);
        let farthest = self.nodes.iter().flat_map(|node| &node.distances).copied().max();
        let distance = farthest.unwrap_or(OWN_DISTANCE).max(OWN_DISTANCE);
        let node_ns = cache_ns.saturating_mul(distance) / OWN_DISTANCE;
        let bounded = |ns: u64| ns.clamp(LEAST_NS, MOST_NS);
        let cpu_ns = if shares_caches { bounded(cpu_ns) } else { 0 };
        MoveCosts { cpu_ns, cache_ns: bounded(cache_ns), node_ns: bounded(node_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{HostCache, HostCpu, HostNode};
    use proptest::prelude::*;

    fn preset(name: &str) -> Machine {
        let (name, text) = crate::presets().iter().find(|(known, _)| *known == name).unwrap();
        Machine::parse(text, name).unwrap()
    }

    #[test]
    fn a_move_costs_a_private_cache_of_lines() {
        let costs = preset("chiplet-64").move_costs();
        // 16,384 lines of 330 cycles of 333 ps, and of 50.
        assert_eq!(costs, MoveCosts { cpu_ns: 272_793, cache_ns: 1_800_437, node_ns: 1_800_437 });
    }

    #[test]
    fn a_machine_has_the_moves_that_its_caches_and_nodes_make() {
        for (name, is_there) in [
            ("chiplet-64", [true, true, false]),
            ("server-2s", [true, false, true]),
            ("dash-16", [false, true, true]),
            ("sgi-4d340", [false, true, false]),
        ] {
            let machine = preset(name);
            let moves = machine.move_costs().of(machine.cpus() / machine.domain_cpus(), machine.nodes.len());
            assert_eq!(moves.map(|there| there.is_some()), is_there, "{name}");
        }
    }

    #[test]
    fn a_move_to_another_node_costs_no_less() {
        for (name, _) in crate::presets() {
            let MoveCosts { cpu_ns, cache_ns, node_ns } = preset(name).move_costs();
            assert!(
                cpu_ns <= cache_ns && 0 < cache_ns && cache_ns <= node_ns,
                "{name}: {cache_ns}, {node_ns}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_host_that_lies_has_costs_within_bounds(size in any::<Option<u64>>(), distance in any::<u64>(), shares in any::<bool>()) {
            let cpus = (0..2).map(|id| HostCpu { id, core_cpus: vec![id], package: None, clock_hz: None });
            let cache = |cpu| HostCache { level: 2, holds: Holds::Both, size_bytes: size, ways: None, line_bytes: None, cpus: vec![cpu] };
            let node = HostNode { id: 0, cpus: vec![0, 1], memory_bytes: None, distances: vec![10, distance] };
            let outer = HostCache { level: 3, cpus: vec![0, 1], ..cache(0) };
            let caches = [cache(0), cache(1)].into_iter().chain(shares.then_some(outer)).collect();
            let host = HostTopology { cpus: cpus.collect(), caches, nodes: vec![node], ..HostTopology::default() };
            let MoveCosts { cpu_ns, cache_ns, node_ns } = host.move_costs();
            let least_ns = if shares { LEAST_NS } else { 0 };
            prop_assert!((least_ns..=cache_ns).contains(&cpu_ns) && (cpu_ns > 0) == shares);
            prop_assert!((LEAST_NS..=MOST_NS).contains(&cache_ns) && (cache_ns..=MOST_NS).contains(&node_ns));
        }
    }
}
