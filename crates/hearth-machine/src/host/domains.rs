//! Which CPUs share a cache.

use std::collections::{BTreeMap, BTreeSet};

use super::{HostCache, HostTopology};
use crate::Holds;

impl HostTopology {
    /// The cache domain of each online CPU: the CPUs that share its outermost cache that holds data. CPUs of
    /// which no such cache is known share one with those of their socket of which none is known either. A cache
    /// across nodes counts as one for each node: to the scheduler all of a domain is equally far from any CPU.
    pub fn domains(&self) -> Vec<Vec<usize>> {
        let outermost = self.outermost();
        let node = self.node_of_cpus();
        let mut taken: BTreeSet<usize> = BTreeSet::new();
        let mut domains: Vec<Vec<usize>> = Vec::new();
        for cpu in &self.cpus {
            if taken.contains(&cpu.id) {
                continue;
            }
            let shared = match outermost.get(&cpu.id) {
                Some(cache) => cache.cpus.clone(),
                None => {
                    let without = |other: &usize| !outermost.contains_key(other);
                    self.socket_of(cpu.id).iter().copied().filter(without).collect()
                }
            };
            let is_near = |other: &usize| node.get(other) == node.get(&cpu.id) && !taken.contains(other);
            let mut members: BTreeSet<usize> = shared.into_iter().filter(is_near).collect();
            members.insert(cpu.id);
            taken.extend(&members);
            domains.push(members.into_iter().collect());
        }
        domains
    }

    fn socket_of(&self, cpu: usize) -> &[usize] {
        self.sockets.iter().find(|socket| socket.binary_search(&cpu).is_ok()).map_or(&[], Vec::as_slice)
    }

    /// By CPU its outermost cache that holds data.
    fn outermost(&self) -> BTreeMap<usize, &HostCache> {
        let data = self.caches.iter().filter(|cache| cache.holds != Holds::Instructions);
        // Inner levels come first, so that outer ones replace them.
        data.flat_map(|cache| cache.cpus.iter().map(move |cpu| (*cpu, cache))).collect()
    }

    /// By CPU the number of its node.
    fn node_of_cpus(&self) -> BTreeMap<usize, usize> {
        self.nodes.iter().flat_map(|node| node.cpus.iter().map(|cpu| (*cpu, node.id))).collect()
    }
}
