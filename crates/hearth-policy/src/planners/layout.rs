//! Which CPUs each processor set has.

use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Sets of CPUs by whose they are, none of which is empty or has a CPU of another; nobody's is the default set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    sets: Vec<(Option<u32>, Vec<usize>)>,
}

/// A CPU: its node, cache domain and number.
pub(super) type Cpu = (usize, usize, usize);

/// A set in the making.
struct Set {
    wanted: usize,
    before: BTreeSet<usize>,
    cpus: Vec<usize>,
}

impl Layout {
    /// Sets of these sizes, which together are all CPUs. Each has whole cache domains first, of one node if
    /// that is possible, and of those it had before.
    pub fn new(cpus: &[Cpu], sizes: &[(Option<u32>, usize)], before: &Self) -> Self {
        let mut sets: Vec<Set> = sizes
            .iter()
            .map(|(key, wanted)| Set {
                wanted: *wanted,
                before: before.of(*key).into_iter().flatten().copied().collect(),
                cpus: Vec::new(),
            })
            .collect();
        let mut domains = domains(cpus);
        // The largest first: it has most to lose.
        let mut order: Vec<usize> = (0..sets.len()).collect();
        order.sort_by_key(|&set| Reverse(sets[set].wanted));
        for &set in &order {
            sets[set].take_whole(&mut domains);
        }
        for &set in &order {
            sets[set].take_rest(&mut domains);
        }
        let keys = sizes.iter().map(|(key, _)| *key);
        let cpus = sets.into_iter().map(|set| {
            let mut cpus = set.cpus;
            cpus.sort_unstable();
            cpus
        });
        Self { sets: keys.zip(cpus).filter(|(_, cpus)| !cpus.is_empty()).collect() }
    }

    pub fn sets(&self) -> impl Iterator<Item = (Option<u32>, &Vec<usize>)> {
        self.sets.iter().map(|(key, cpus)| (*key, cpus))
    }

    fn of(&self, key: Option<u32>) -> Option<&Vec<usize>> {
        self.sets.iter().find(|(other, _)| *other == key).map(|(_, cpus)| cpus)
    }
}

/// A cache domain's free CPUs.
struct Domain {
    node: usize,
    size: usize,
    free: Vec<usize>,
}

fn domains(cpus: &[Cpu]) -> Vec<Domain> {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1))
        .map(|chunk| Domain {
            node: chunk[0].0,
            size: chunk.len(),
            free: chunk.iter().map(|(_, _, number)| *number).collect(),
        })
        .collect()
}

impl Set {
    fn missing(&self) -> usize {
        self.wanted - self.cpus.len()
    }

    fn had(&self, domain: &Domain) -> usize {
        domain.free.iter().filter(|cpu| self.before.contains(cpu)).count()
    }

    /// Domains of which all CPUs are free, as long as they fit.
    fn take_whole(&mut self, domains: &mut [Domain]) {
        let mut node = None;
        loop {
            let missing = self.missing();
            let is_whole = |domain: &&mut Domain| domain.free.len() == domain.size && domain.size <= missing;
            let best = domains
                .iter_mut()
                .filter(is_whole)
                .max_by_key(|domain| (self.had(domain), Some(domain.node) == node, Reverse(domain.free[0])));
            let Some(domain) = best else { return };
            node = Some(domain.node);
            self.cpus.append(&mut domain.free);
        }
    }

    /// What is missing, of domains that it had CPUs of, then of those with least room.
    fn take_rest(&mut self, domains: &mut [Domain]) {
        while self.missing() > 0 {
            let missing = self.missing();
            let best = domains.iter_mut().filter(|domain| !domain.free.is_empty()).max_by_key(|domain| {
                let fits = domain.free.len() >= missing;
                (self.had(domain), fits, Reverse(domain.free.len()), Reverse(domain.free[0]))
            });
            let Some(domain) = best else { return };
            let before = &self.before;
            domain.free.sort_by_key(|cpu| (!before.contains(cpu), *cpu));
            let taken = missing.min(domain.free.len());
            self.cpus.extend(domain.free.drain(..taken));
            domain.free.sort_unstable();
        }
    }
}
