//! A machine, and how it is parted, in the form that the scheduler reads.

use crate::{MAX_CELL, MAX_CPUS, MAX_PARTS, Shape, Topology};
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
        let nr_online = domains.iter().map(Vec::len).sum::<usize>() as u32;
        let mut topology = Self { nr_cpus: greatest as u32 + 1, nr_online, ..Self::zeroed() };
        for (domain, members) in domains.iter().enumerate() {
            for &cpu in members {
                topology.domain_of[cpu] = domain as u32;
                topology.node_of[cpu] = node_of(cpu) as u32;
            }
        }
        for (cpu, sibling) in topology.sibling_of.iter_mut().enumerate() {
            *sibling = cpu as u32;
        }
        Ok(topology)
    }

    /// These CPUs are threads of one core.
    pub fn share_core(&mut self, cpus: &[usize]) {
        self.has_siblings |= u32::from(cpus.len() > 1);
        for (cpu, next) in cpus.iter().zip(cpus.iter().cycle().skip(1)) {
            self.sibling_of[*cpu] = *next as u32;
        }
    }
}

/// Parts that are no partition of a machine's CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPartition {
    /// Too many parts.
    #[error("{0} parts; at most {MAX_PARTS} can be kept apart")]
    TooMany(usize),
    /// A CPU that there is not, or that is in two parts.
    #[error("CPU {0} is in two parts, or does not exist")]
    Wrong(usize),
    /// A part without CPUs.
    #[error("part {0} has no CPU")]
    Empty(usize),
    /// A CPU that is in no part.
    #[error("CPU {0} is in no part")]
    Left(usize),
}

impl Shape {
    /// The machine undivided: one part.
    pub fn undivided(domains: &[Vec<usize>]) -> Self {
        let mut shape = Self::zeroed();
        shape.nr_parts = 1;
        shape.add_part(0, domains);
        shape
    }

    /// The machine in parts, each a list of CPUs. `domains` are all CPUs, by cache domain.
    ///
    /// # Errors
    /// Parts that are not disjoint, leave a CPU out, or are too many.
    pub fn new(parts: &[Vec<usize>], domains: &[Vec<usize>]) -> Result<Self, NoPartition> {
        if parts.len() > MAX_PARTS {
            return Err(NoPartition::TooMany(parts.len()));
        }
        if let Some(empty) = parts.iter().position(Vec::is_empty) {
            return Err(NoPartition::Empty(empty));
        }
        let mut left: std::collections::BTreeSet<usize> = domains.iter().flatten().copied().collect();
        if let Some(&wrong) = parts.iter().flatten().find(|cpu| !left.remove(cpu)) {
            return Err(NoPartition::Wrong(wrong));
        }
        if let Some(&cpu) = left.first() {
            return Err(NoPartition::Left(cpu));
        }
        let mut shape = Self::zeroed();
        shape.nr_parts = parts.len() as u32;
        for (part, cpus) in parts.iter().enumerate() {
            let within =
                |domain: &Vec<usize>| domain.iter().copied().filter(|cpu| cpus.contains(cpu)).collect();
            shape.add_part(part, &domains.iter().map(within).collect::<Vec<Vec<usize>>>());
        }
        Ok(shape)
    }

    fn add_part(&mut self, part: usize, domains: &[Vec<usize>]) {
        self.part_first[part] = self.nr_cells;
        for members in domains.iter().flat_map(|domain| domain.chunks(MAX_CELL)) {
            let cell = self.nr_cells as usize;
            let first = if cell == 0 { 0 } else { self.end[cell - 1] as usize };
            self.first[cell] = first as u32;
            for (index, &cpu) in (first..).zip(members) {
                self.part_of[cpu] = part as u32;
                self.cell_of[cpu] = cell as u32;
                self.member[index] = cpu as u32;
            }
            self.end[cell] = (first + members.len()) as u32;
            self.nr_cells += 1;
        }
        self.part_end[part] = self.nr_cells;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus_of(shape: &Shape, cell: usize) -> &[u32] {
        &shape.member[shape.first[cell] as usize..shape.end[cell] as usize]
    }

    #[test]
    fn domains_keep_their_order_and_numbers_may_have_holes() {
        let domains = [vec![0, 1], vec![4, 3]];
        let topology = Topology::new(6, &domains, |cpu| cpu / 3 * 2).unwrap();
        assert_eq!((topology.nr_cpus, topology.nr_online), (6, 4));
        assert_eq!((topology.domain_of[4], topology.node_of[4], topology.node_of[1]), (1, 2, 0));
        let shape = Shape::undivided(&domains);
        assert_eq!((shape.nr_parts, shape.nr_cells), (1, 2));
        assert_eq!((cpus_of(&shape, 0), cpus_of(&shape, 1)), (&[0, 1][..], &[4, 3][..]));
    }

    #[test]
    fn as_many_domains_as_cpus_fit_and_no_cpu_beyond() {
        let single = |cpus: usize| (0..cpus).map(|cpu| vec![cpu]).collect::<Vec<_>>();
        Topology::new(MAX_CPUS, &single(MAX_CPUS), |_| 0).unwrap();
        let full = Shape::undivided(&single(MAX_CPUS));
        assert_eq!((full.nr_cells as usize, full.end[MAX_CPUS - 1] as usize), (MAX_CPUS, MAX_CPUS));
        let greatest = MAX_CPUS;
        let beyond = TooManyCpus { greatest };
        assert_eq!(Topology::new(1, &single(MAX_CPUS + 1), |_| 0), Err(beyond));
        assert_eq!(Topology::new(MAX_CPUS + 1, &single(1), |_| 0), Err(beyond));
    }

    #[test]
    fn a_large_domain_is_several_cells() {
        let shape = Shape::undivided(&[(0..40).collect()]);
        assert_eq!(shape.nr_cells, 3);
        assert_eq!(cpus_of(&shape, 2), (32..40).collect::<Vec<u32>>());
        assert_eq!((shape.part_first[0], shape.part_end[0]), (0, 3));
    }

    #[test]
    fn a_part_has_cells_of_its_own_in_each_domain() {
        let domains = [vec![0, 1, 2, 3], vec![4, 5, 6, 7]];
        let shape = Shape::new(&[vec![0, 1], vec![2, 3, 4, 5, 6, 7]], &domains).unwrap();
        assert_eq!((shape.nr_parts, shape.nr_cells), (2, 3));
        assert_eq!((shape.part_first[1], shape.part_end[1]), (1, 3));
        assert_eq!(cpus_of(&shape, 1), [2, 3]);
        assert_eq!((shape.part_of[1], shape.part_of[7], shape.cell_of[7]), (0, 1, 2));
    }

    #[test]
    fn what_is_no_partition_is_refused() {
        let domains = [vec![0, 1], vec![2, 3]];
        let shape = |parts: &[Vec<usize>]| Shape::new(parts, &domains).unwrap_err();
        assert_eq!(shape(&[vec![0, 1], vec![1, 2, 3]]), NoPartition::Wrong(1));
        assert_eq!(shape(&[vec![0, 1, 2, 3, 4]]), NoPartition::Wrong(4));
        assert_eq!(shape(&[vec![0, 1], vec![3]]), NoPartition::Left(2));
        assert_eq!(shape(&[vec![0, 1, 2, 3], vec![]]), NoPartition::Empty(1));
        assert_eq!(shape(&vec![vec![0]; MAX_PARTS + 1]), NoPartition::TooMany(MAX_PARTS + 1));
    }
}
