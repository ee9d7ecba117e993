//! The host's topology, in the form that the scheduler reads.

use crate::Error;
use hearth_abi::{MAX_CPUS, TooManyCpus, Topology};
use hearth_machine::MoveCosts;
use hearth_machine::host::HostTopology;

/// Each online CPU with its cache domain, from 0, and its memory node.
pub(crate) fn places(host: &HostTopology) -> Vec<(usize, usize, usize)> {
    let node_of = |cpu: usize| host.nodes.iter().find(|node| node.cpus.contains(&cpu)).map(|node| node.id);
    let place = |domain: usize| move |cpu: usize| (cpu, domain, node_of(cpu).unwrap_or(0));
    let domains = host.domains().into_iter().enumerate();
    domains.flat_map(|(domain, cpus)| cpus.into_iter().map(place(domain))).collect()
}

pub(crate) fn topology(host: &HostTopology, costs: MoveCosts) -> Result<Topology, Error> {
    let greatest = host.cpus.iter().map(|cpu| cpu.id).chain(host.offline.iter().copied()).max();
    let node_of = |cpu: usize| host.nodes.iter().find(|node| node.cpus.contains(&cpu)).map(|node| node.id);
    let mut topology =
        Topology::new(greatest.unwrap_or(0) + 1, &host.domains(), |cpu| node_of(cpu).unwrap_or(0))
            .map_err(|TooManyCpus { greatest }| Error::TooManyCpus { greatest, limit: MAX_CPUS })?;
    // A thread that is offline is none that could be busy.
    let is_there = |id: &usize| host.cpus.iter().any(|cpu| cpu.id == *id);
    for cpu in &host.cpus {
        let threads: Vec<usize> = cpu.core_cpus.iter().copied().filter(is_there).collect();
        topology.share_core(&threads);
    }
    let MoveCosts { cpu_ns, cache_ns, node_ns } = costs;
    Ok(Topology { cpu_move_ns: cpu_ns, cache_move_ns: cache_ns, node_move_ns: node_ns, ..topology })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_machine::Holds;
    use hearth_machine::host::{HostCache, HostCpu, HostNode};
    use proptest::prelude::*;

    fn cpu(id: usize, package: u64) -> HostCpu {
        HostCpu { id, core_cpus: vec![id], package: Some(package), clock_hz: None }
    }

    fn cache(level: u64, cpus: &[usize]) -> HostCache {
        HostCache {
            level,
            holds: Holds::Both,
            size_bytes: Some(1 << 20),
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
                HostNode { id: 0, cpus: vec![0, 1], memory_bytes: Some(1), distances: vec![] },
                HostNode { id: 2, cpus: vec![4, 5], memory_bytes: Some(1), distances: vec![] },
            ],
            ..HostTopology::default()
        };
        let topology = topology(&host, host.move_costs()).unwrap();
        assert_eq!((topology.nr_cpus, topology.nr_online), (6, 4));
        assert_eq!(host.domains(), [vec![0, 1], vec![4, 5]]);
        assert_eq!((topology.domain_of[5], topology.node_of[5]), (1, 2));
    }

    #[test]
    fn threads_of_a_core_are_a_ring_without_those_that_are_offline() {
        let with = |id: usize, core: &[usize]| HostCpu { core_cpus: core.to_vec(), ..cpu(id, 0) };
        let cores: [&[usize]; 4] = [&[0, 4], &[1, 2, 5, 6], &[3, 7], &[8]];
        let of = |id: usize| cores.iter().find(|core| core.contains(&id)).unwrap();
        let cpus = (0..9).filter(|id| *id != 7).map(|id| with(id, of(id))).collect();
        let host = HostTopology { cpus, offline: vec![7], ..HostTopology::default() };
        let shape = topology(&host, host.move_costs()).unwrap();
        assert_eq!(shape.sibling_of[..9], [4, 2, 5, 3, 0, 6, 1, 7, 8]);
        assert_eq!(shape.has_siblings, 1);
        let alone =
            HostTopology { cpus: vec![with(0, &[0, 1])], offline: vec![1], ..HostTopology::default() };
        assert_eq!(topology(&alone, alone.move_costs()).unwrap().has_siblings, 0);
    }

    #[test]
    fn cpus_without_a_known_cache_share_one_with_their_socket() {
        let (cpus, sockets) = (vec![cpu(0, 0), cpu(1, 1), cpu(2, 0)], vec![vec![0, 2], vec![1]]);
        let host = HostTopology { cpus, sockets, ..HostTopology::default() };
        assert_eq!(host.domains(), [vec![0, 2], vec![1]]);
    }

    fn node(id: usize, cpus: &[usize], memory_bytes: u64) -> HostNode {
        HostNode { id, cpus: cpus.to_vec(), memory_bytes: Some(memory_bytes), distances: vec![] }
    }

    #[test]
    fn a_cache_across_nodes_is_a_domain_of_each() {
        let host = HostTopology {
            cpus: vec![cpu(0, 0), cpu(1, 0), cpu(2, 0), cpu(3, 0)],
            caches: vec![cache(3, &[0, 1, 2, 3])],
            nodes: vec![node(0, &[0, 2], 1), node(1, &[1, 3], 1)],
            ..HostTopology::default()
        };
        assert_eq!(host.domains(), [vec![0, 2], vec![1, 3]]);
    }

    #[test]
    fn nodes_may_be_unequal_and_lack_memory_or_cpus() {
        let host = HostTopology {
            cpus: vec![cpu(0, 0), cpu(1, 0), cpu(2, 0), cpu(7, 1)],
            caches: vec![cache(3, &[0, 1, 2]), cache(3, &[7])],
            nodes: vec![node(0, &[0, 1, 2], 1 << 40), node(3, &[], 1 << 20), node(9, &[7], 0)],
            ..HostTopology::default()
        };
        let shape = topology(&host, host.move_costs()).unwrap();
        assert_eq!((shape.nr_cpus, shape.nr_online), (8, 4));
        assert_eq!((shape.node_of[2], shape.node_of[7]), (0, 9));
        assert_eq!(host.domains(), [vec![0, 1, 2], vec![7]]);
    }

    #[test]
    fn as_many_domains_as_cpus_fit() {
        let host = HostTopology {
            cpus: (0..MAX_CPUS).map(|id| cpu(id, id as u64)).collect(),
            nodes: vec![node(0, &(0..MAX_CPUS).collect::<Vec<_>>(), 1)],
            ..HostTopology::default()
        };
        let shape = topology(&host, host.move_costs()).unwrap();
        assert_eq!((shape.nr_online as usize, host.domains().len()), (MAX_CPUS, MAX_CPUS));
    }

    /// For each CPU that is there: its node and the cache that it shares.
    fn cpus() -> impl Strategy<Value = Vec<(usize, usize, usize)>> {
        prop::collection::btree_map(0..MAX_CPUS, (0_usize..5, 0_usize..6), 1..60)
            .prop_map(|cpus| cpus.into_iter().map(|(id, (node, cache))| (id, node * 3, cache)).collect())
    }

    proptest! {
        #[test]
        fn each_cpu_is_in_one_domain_of_its_node_and_its_cache(cpus in cpus()) {
            let of = |test: &dyn Fn(&(usize, usize, usize)) -> bool| -> Vec<usize> {
                cpus.iter().filter(|cpu| test(cpu)).map(|(id, ..)| *id).collect()
            };
            let host = HostTopology {
                cpus: cpus.iter().map(|(id, ..)| cpu(*id, 0)).collect(),
                sockets: vec![cpus.iter().map(|(id, ..)| *id).collect()],
                caches: (0..5).map(|number| cache(3, &of(&|cpu| cpu.2 == number))).collect(),
                nodes: (0..15).map(|number| node(number, &of(&|cpu| cpu.1 == number), 1)).collect(),
                ..HostTopology::default()
            };
            let shape = topology(&host, host.move_costs()).unwrap();
            let domains = host.domains();
            for (id, of_node, of_cache) in &cpus {
                prop_assert_eq!(shape.node_of[*id] as usize, *of_node);
                let domain = shape.domain_of[*id] as usize;
                let members = &domains[domain];
                prop_assert_eq!(members.iter().filter(|member| *member == id).count(), 1);
                let found = |member: &usize| cpus.iter().find(|cpu| cpu.0 == *member).unwrap();
                prop_assert!(members.iter().all(|member| found(member).1 == *of_node));
                // Those of cache 5, which is not known, share the rest of their socket.
                let is_known = members.iter().all(|member| found(member).2 != 5);
                let is_one = members.iter().all(|member| found(member).2 == *of_cache);
                prop_assert!(is_one || !is_known, "{:?} of {:?}", members, cpus);
            }
            prop_assert_eq!(domains.iter().map(Vec::len).sum::<usize>(), cpus.len());
        }
    }

    #[test]
    fn a_cpu_beyond_the_limit_is_refused() {
        let host = HostTopology { cpus: vec![cpu(512, 0)], ..HostTopology::default() };
        assert!(matches!(
            topology(&host, host.move_costs()),
            Err(Error::TooManyCpus { greatest: 512, limit: 512 })
        ));
    }
}
