//! The host's topology and a policy, in the form that the scheduler reads (`bpf/interface.h`).

use crate::Error;
use crate::scheduler::bpf::types;
use hearth_machine::Holds;
use hearth_machine::host::HostTopology;
use hearth_policy::Policy;

/// CPUs that the scheduler can serve (`HEARTH_MAX_CPUS`): those of lower numbers.
pub(crate) const MAX_CPUS: usize = 512;

pub(crate) fn policy(policy: &Policy, tick_ns: u64) -> types::hearth_policy {
    types::hearth_policy {
        quantum_ns: policy.quantum_ns,
        tick_ns,
        decay_ns: policy.decay_ns,
        time_ns: policy.credit.time_ns,
        processor_ns: policy.credit.processor_ns,
        llc_ns: policy.credit.llc_ns,
        node_ns: policy.credit.node_ns,
        fade_milli: policy.fade_permille,
        discipline: policy.discipline as u32,
        flags: policy.flags(),
        pad: 0,
    }
}

/// The cache domain of each online CPU: the CPUs that share its outermost cache that holds data; a
/// CPU of which no such cache is known shares one with its socket.
pub fn domains(host: &HostTopology) -> Vec<Vec<usize>> {
    let mut domains: Vec<Vec<usize>> = Vec::new();
    for cpu in &host.cpus {
        if domains.iter().any(|domain| domain.contains(&cpu.id)) {
            continue;
        }
        let cache = host
            .caches
            .iter()
            .filter(|cache| cache.holds != Holds::Instructions && cache.cpus.contains(&cpu.id))
            .max_by_key(|cache| cache.level);
        let in_package =
            || host.cpus.iter().filter(|other| other.package == cpu.package).map(|other| other.id);
        let mut members = cache.map_or_else(|| in_package().collect(), |cache| cache.cpus.clone());
        members.retain(|member| !domains.iter().any(|domain| domain.contains(member)));
        if !members.contains(&cpu.id) {
            members.push(cpu.id);
        }
        members.sort_unstable();
        domains.push(members);
    }
    domains
}

pub(crate) fn topology(host: &HostTopology) -> Result<types::hearth_topology, Error> {
    let mut shape = types::hearth_topology::default();
    let limit = MAX_CPUS;
    let greatest = host.cpus.iter().map(|cpu| cpu.id).chain(host.offline.iter().copied()).max().unwrap_or(0);
    if greatest >= limit {
        return Err(Error::TooManyCpus { greatest, limit });
    }
    shape.nr_cpus = greatest as u32 + 1;
    let domains = domains(host);
    shape.nr_domains = domains.len() as u32;
    let mut next = 0;
    for (index, members) in domains.iter().enumerate() {
        shape.first[index] = next as u32;
        for &cpu in members {
            shape.domain_of[cpu] = index as u32;
            shape.member[next] = cpu as u32;
            next += 1;
        }
        shape.end[index] = next as u32;
    }
    for node in &host.nodes {
        node.cpus.iter().for_each(|&cpu| shape.node_of[cpu] = node.id as u32);
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_machine::host::{HostCache, HostCpu, HostNode};

    fn cpu(id: usize, package: u64) -> HostCpu {
        HostCpu { id, core_cpus: vec![id], package: Some(package), clock_hz: None }
    }

    fn cache(level: u64, cpus: &[usize]) -> HostCache {
        HostCache {
            level,
            holds: Holds::Both,
            size_bytes: 1 << 20,
            ways: None,
            line_bytes: None,
            cpus: cpus.to_vec(),
        }
    }

    #[test]
    fn domains_are_the_outermost_caches_and_numbers_may_have_holes() {
        let host = HostTopology {
            cpus: vec![cpu(0, 0), cpu(1, 0), cpu(4, 1), cpu(5, 1)],
            caches: vec![cache(2, &[0]), cache(3, &[0, 1]), cache(3, &[4, 5])],
            nodes: vec![
                HostNode { id: 0, cpus: vec![0, 1], memory_bytes: 1, distances: vec![] },
                HostNode { id: 2, cpus: vec![4, 5], memory_bytes: 1, distances: vec![] },
            ],
            ..HostTopology::default()
        };
        let shape = topology(&host).unwrap();
        assert_eq!((shape.nr_cpus, shape.nr_domains), (6, 2));
        assert_eq!(shape.member[..4], [0, 1, 4, 5]);
        assert_eq!((&shape.first[..2], &shape.end[..2]), (&[0, 2][..], &[2, 4][..]));
        assert_eq!((shape.domain_of[5], shape.node_of[5]), (1, 2));
    }

    #[test]
    fn cpus_without_a_known_cache_share_one_with_their_socket() {
        let host = HostTopology { cpus: vec![cpu(0, 0), cpu(1, 1), cpu(2, 0)], ..HostTopology::default() };
        assert_eq!(domains(&host), [vec![0, 2], vec![1]]);
    }

    #[test]
    fn a_cpu_beyond_the_limit_is_refused() {
        let host = HostTopology { cpus: vec![cpu(512, 0)], ..HostTopology::default() };
        assert!(matches!(topology(&host), Err(Error::TooManyCpus { greatest: 512, limit: 512 })));
    }
}
