//! A machine in the form that the scheduler reads.

use crate::{MAX_CPUS, Topology};
use bytemuck::Zeroable;

/// A CPU has a number that the scheduler cannot serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("CPU {greatest}: the scheduler serves CPUs below number {MAX_CPUS}")]
pub struct TooManyCpus {
    /// The greatest number.
    pub greatest: usize,
}

impl Topology {
    /// A machine of these cache domains, each a list of its CPUs, without a CPU twice. `node_of` gives the
    /// memory node of each. CPUs that may come later have numbers below `nr_cpus`.
    pub fn new(
        nr_cpus: usize,
        domains: &[Vec<usize>],
        node_of: impl Fn(usize) -> usize,
    ) -> Result<Self, TooManyCpus> {
        let cpus = domains.iter().flatten().copied();
        let greatest = cpus.chain(nr_cpus.checked_sub(1)).max().unwrap_or(0);
        if greatest >= MAX_CPUS {
            return Err(TooManyCpus { greatest });
        }
        let mut topology = Self { nr_cpus: greatest as u32 + 1, ..Self::zeroed() };
        topology.nr_domains = domains.len() as u32;
        let mut next = 0;
        for (domain, members) in domains.iter().enumerate() {
            topology.first[domain] = next as u32;
            for &cpu in members {
                topology.domain_of[cpu] = domain as u32;
                topology.node_of[cpu] = node_of(cpu) as u32;
                topology.member[next] = cpu as u32;
                next += 1;
            }
            topology.end[domain] = next as u32;
        }
        Ok(topology)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_keep_their_order_and_numbers_may_have_holes() {
        let topology = Topology::new(6, &[vec![0, 1], vec![4, 3]], |cpu| cpu / 3 * 2).unwrap();
        assert_eq!((topology.nr_cpus, topology.nr_domains), (6, 2));
        assert_eq!(topology.member[..4], [0, 1, 4, 3]);
        assert_eq!((&topology.first[..2], &topology.end[..2]), (&[0, 2][..], &[2, 4][..]));
        assert_eq!((topology.domain_of[4], topology.node_of[4], topology.node_of[1]), (1, 2, 0));
    }

    #[test]
    fn as_many_domains_as_cpus_fit_and_no_cpu_beyond() {
        let single = |cpus: usize| (0..cpus).map(|cpu| vec![cpu]).collect::<Vec<_>>();
        let full = Topology::new(MAX_CPUS, &single(MAX_CPUS), |_| 0).unwrap();
        assert_eq!((full.nr_domains as usize, full.end[MAX_CPUS - 1] as usize), (MAX_CPUS, MAX_CPUS));
        let greatest = MAX_CPUS;
        let beyond = TooManyCpus { greatest };
        assert_eq!(Topology::new(1, &single(MAX_CPUS + 1), |_| 0), Err(beyond));
        assert_eq!(Topology::new(MAX_CPUS + 1, &single(1), |_| 0), Err(beyond));
    }
}
