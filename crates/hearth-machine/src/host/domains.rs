//! Which CPUs share a cache.

use super::HostTopology;
use crate::Holds;

impl HostTopology {
    /// The cache domain of each online CPU: the CPUs that share its outermost cache that holds data; a
    /// CPU of which no such cache is known shares one with its socket. A cache across nodes counts as one
    /// for each node: to the scheduler all of a domain is equally far from any CPU.
    pub fn domains(&self) -> Vec<Vec<usize>> {
        let mut domains: Vec<Vec<usize>> = Vec::new();
        for cpu in &self.cpus {
            if domains.iter().any(|domain| domain.contains(&cpu.id)) {
                continue;
            }
            let cache = self
                .caches
                .iter()
                .filter(|cache| cache.holds != Holds::Instructions && cache.cpus.contains(&cpu.id))
                .max_by_key(|cache| cache.level);
            let in_package =
                || self.cpus.iter().filter(|other| other.package == cpu.package).map(|other| other.id);
            let mut members = cache.map_or_else(|| in_package().collect(), |cache| cache.cpus.clone());
            let node = |id: usize| self.nodes.iter().find(|node| node.cpus.contains(&id)).map(|node| node.id);
            members.retain(|member| {
                node(*member) == node(cpu.id) && !domains.iter().any(|domain| domain.contains(member))
            });
            if !members.contains(&cpu.id) {
                members.push(cpu.id);
            }
            members.sort_unstable();
            domains.push(members);
        }
        domains
    }
}
