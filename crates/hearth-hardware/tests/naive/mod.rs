//! A memory system written for clarity: caches are lists of lines in order of use, ownership is found
//! by looking everywhere. The fast one must agree with it on every reference.

use hearth_machine::{Cache, Holds, Machine};

#[derive(Clone, Debug)]
struct Line {
    number: u64,
    dirty: bool,
}

/// One cache: sets of lines, the most recently used first.
#[derive(Clone, Debug)]
struct Lru {
    sets: Vec<Vec<Line>>,
    ways: usize,
}

impl Lru {
    fn new(cache: &Cache, line_bytes: u64) -> Self {
        let sets = cache.size_bytes / line_bytes / u64::from(cache.ways);
        Self { sets: vec![Vec::new(); sets as usize], ways: cache.ways as usize }
    }

    fn set(&mut self, number: u64) -> &mut Vec<Line> {
        let index = number as usize % self.sets.len();
        &mut self.sets[index]
    }

    fn find(&mut self, number: u64) -> Option<&mut Line> {
        self.set(number).iter_mut().find(|line| line.number == number)
    }

    fn take(&mut self, number: u64) -> Option<Line> {
        let set = self.set(number);
        let position = set.iter().position(|line| line.number == number)?;
        Some(set.remove(position))
    }

    /// Makes the line the most recent; says whether it was there.
    fn touch(&mut self, number: u64) -> bool {
        match self.take(number) {
            Some(line) => {
                self.set(number).insert(0, line);
                true
            }
            None => false,
        }
    }

    fn insert(&mut self, number: u64, dirty: bool) -> Option<Line> {
        let ways = self.ways;
        let set = self.set(number);
        set.insert(0, Line { number, dirty });
        if set.len() > ways { set.pop() } else { None }
    }
}

/// A last level: for each CPU that has ways of its own a cache, one if none has.
#[derive(Clone, Debug)]
struct LastLevel(Vec<Lru>);

impl LastLevel {
    fn new(cache: &Cache, line_bytes: u64) -> Self {
        let whole = Lru::new(cache, line_bytes);
        match cache.is_parted {
            false => Self(vec![whole]),
            true => Self(vec![Lru { ways: cache.ways as usize / cache.shared_by, ..whole }; cache.shared_by]),
        }
    }

    fn find(&mut self, number: u64) -> Option<&mut Line> {
        self.0.iter_mut().find_map(|part| part.find(number))
    }

    fn take(&mut self, number: u64) -> Option<Line> {
        self.0.iter_mut().find_map(|part| part.take(number))
    }

    fn touch(&mut self, number: u64) -> bool {
        self.0.iter_mut().any(|part| part.touch(number))
    }

    fn insert(&mut self, cpu: usize, number: u64, dirty: bool) -> Option<Line> {
        let part = cpu.min(self.0.len() - 1);
        self.0[part].insert(number, dirty)
    }
}

/// What all CPUs together have counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub l1d_misses: u64,
    pub l1i_misses: u64,
    pub l2_hits: u64,
    pub llc_hits: u64,
    pub memory: u64,
    pub cache_to_cache: u64,
    pub upgrades: u64,
    pub invalidations: u64,
    pub write_backs: u64,
}

#[derive(Debug)]
struct Cpu {
    l1i: Lru,
    l1d: Lru,
    l2: Option<Lru>,
    domain: usize,
}

pub struct Naive {
    cpus: Vec<Cpu>,
    llcs: Vec<LastLevel>,
    shared_by: usize,
    l2_fetches: bool,
    llc_fetches: bool,
    /// Whether caches supply their neighbours with what they have clean, too. All CPUs are of one node.
    has_node_bus: bool,
    pub counts: Counts,
}

enum From {
    L2,
    Llc,
    Memory,
    Cache,
}

impl Naive {
    pub fn new(machine: &Machine) -> Self {
        let [l1i, l1d, outer @ ..] = &machine.caches[..] else { panic!("two first-level caches") };
        let llc = outer.last().expect("a last level");
        let l2 = outer.first().filter(|_| outer.len() == 2);
        let lru = |cache: &Cache| Lru::new(cache, machine.line_bytes);
        let cpu =
            |cpu: usize| Cpu { l1i: lru(l1i), l1d: lru(l1d), l2: l2.map(lru), domain: cpu / llc.shared_by };
        Self {
            cpus: (0..machine.cpus()).map(cpu).collect(),
            llcs: (0..machine.cpus() / llc.shared_by)
                .map(|_| LastLevel::new(llc, machine.line_bytes))
                .collect(),
            shared_by: llc.shared_by,
            l2_fetches: l2.is_some_and(|l2| l2.holds == Holds::Both),
            llc_fetches: llc.holds == Holds::Both,
            has_node_bus: machine.memory.has_node_bus,
            counts: Counts::default(),
        }
    }

    fn has_privately(&mut self, cpu: usize, number: u64) -> bool {
        let tracks_code = self.llc_fetches;
        let cpu = &mut self.cpus[cpu];
        cpu.l1d.find(number).is_some()
            || tracks_code && cpu.l1i.find(number).is_some()
            || cpu.l2.as_mut().is_some_and(|l2| l2.find(number).is_some())
    }

    fn others_have(&mut self, cpu: usize, number: u64) -> bool {
        let domain = self.cpus[cpu].domain;
        (0..self.cpus.len()).any(|other| other != cpu && self.has_privately(other, number))
            || (0..self.llcs.len()).any(|other| other != domain && self.llcs[other].find(number).is_some())
    }

    /// Takes a line out of all private caches of a CPU; says whether it was modified there.
    fn drop_privately(&mut self, cpu: usize, number: u64) -> bool {
        let llc_fetches = self.llc_fetches;
        let cpu = &mut self.cpus[cpu];
        if llc_fetches {
            cpu.l1i.take(number);
        }
        let l1 = cpu.l1d.take(number).is_some_and(|line| line.dirty);
        let l2 = cpu.l2.as_mut().and_then(|l2| l2.take(number)).is_some_and(|line| line.dirty);
        l1 || l2
    }

    /// Everyone else loses the line. Whether another domain had it modified.
    fn invalidate_others(&mut self, cpu: usize, number: u64) -> bool {
        let domain = self.cpus[cpu].domain;
        let mut supplied = false;
        for other in (0..self.cpus.len()).filter(|&other| other != cpu) {
            if self.has_privately(other, number) {
                self.counts.invalidations += 1;
                let dirty = self.drop_privately(other, number);
                supplied |= dirty && self.cpus[other].domain != domain;
            }
        }
        for other in (0..self.llcs.len()).filter(|&other| other != domain) {
            supplied |= self.llcs[other].take(number).is_some_and(|line| line.dirty);
        }
        supplied
    }

    /// Whoever has the line modified gives the changes up. Whether that was in another domain.
    fn clean_others(&mut self, cpu: usize, number: u64) -> bool {
        let domain = self.cpus[cpu].domain;
        let mut supplied = false;
        for other in (0..self.cpus.len()).filter(|&other| other != cpu) {
            let caches = &mut self.cpus[other];
            let l1 = caches.l1d.find(number).is_some_and(|line| std::mem::take(&mut line.dirty));
            let l2 = caches.l2.as_mut().and_then(|l2| l2.find(number));
            let dirty = l2.is_some_and(|line| std::mem::take(&mut line.dirty)) || l1;
            if dirty && caches.domain == domain {
                if let Some(line) = self.llcs[domain].find(number) {
                    line.dirty = true;
                }
            } else {
                supplied |= dirty;
            }
        }
        for other in (0..self.llcs.len()).filter(|&other| other != domain) {
            supplied |= self.llcs[other].find(number).is_some_and(|line| std::mem::take(&mut line.dirty));
        }
        supplied
    }

    fn last_level(&mut self, cpu: usize, number: u64, write: bool) -> From {
        let domain = self.cpus[cpu].domain;
        let hit = self.llcs[domain].touch(number);
        let supplied =
            if write { self.invalidate_others(cpu, number) } else { self.clean_others(cpu, number) };
        if hit {
            return From::Llc;
        }
        if let Some(victim) = self.llcs[domain].insert(cpu % self.shared_by, number, false) {
            let mut dirty = victim.dirty;
            for other in 0..self.cpus.len() {
                if self.cpus[other].domain == domain {
                    dirty |= self.drop_privately(other, victim.number);
                }
            }
            self.counts.write_backs += u64::from(dirty);
        }
        let neighbour_has_it =
            (0..self.llcs.len()).any(|other| other != domain && self.llcs[other].find(number).is_some());
        if supplied || self.has_node_bus && neighbour_has_it { From::Cache } else { From::Memory }
    }

    fn mark_dirty_in_llc(&mut self, cpu: usize, number: u64, dirty: bool) {
        if let Some(line) = self.llcs[self.cpus[cpu].domain].find(number) {
            line.dirty |= dirty;
        }
    }

    fn second_level(&mut self, cpu: usize, number: u64, write: bool, code: bool) -> From {
        if code && !self.llc_fetches {
            return From::Memory;
        }
        if self.cpus[cpu].l2.is_none() || code && !self.l2_fetches {
            return self.last_level(cpu, number, write);
        }
        if self.cpus[cpu].l2.as_mut().is_some_and(|l2| l2.touch(number)) {
            if write {
                self.invalidate_others(cpu, number);
            }
            return From::L2;
        }
        let from = self.last_level(cpu, number, write);
        let victim = self.cpus[cpu].l2.as_mut().and_then(|l2| l2.insert(number, false));
        if let Some(victim) = victim {
            let l2_fetches = self.l2_fetches;
            let caches = &mut self.cpus[cpu];
            if l2_fetches {
                caches.l1i.take(victim.number);
            }
            let dirty = caches.l1d.take(victim.number).is_some_and(|line| line.dirty) || victim.dirty;
            self.mark_dirty_in_llc(cpu, victim.number, dirty);
        }
        from
    }

    fn count(&mut self, from: &From) {
        match from {
            From::L2 => self.counts.l2_hits += 1,
            From::Llc => self.counts.llc_hits += 1,
            From::Memory => self.counts.memory += 1,
            From::Cache => self.counts.cache_to_cache += 1,
        }
    }

    pub fn data(&mut self, cpu: usize, number: u64, write: bool) {
        if self.cpus[cpu].l1d.touch(number) {
            if write {
                if self.others_have(cpu, number) {
                    self.counts.upgrades += 1;
                    self.invalidate_others(cpu, number);
                }
                self.cpus[cpu].l1d.find(number).expect("just touched").dirty = true;
            }
            return;
        }
        self.counts.l1d_misses += 1;
        let from = self.second_level(cpu, number, write, false);
        self.count(&from);
        if let Some(victim) = self.cpus[cpu].l1d.insert(number, write).filter(|victim| victim.dirty) {
            match &mut self.cpus[cpu].l2 {
                Some(l2) => l2.find(victim.number).expect("included").dirty = true,
                None => self.mark_dirty_in_llc(cpu, victim.number, true),
            }
        }
    }

    pub fn fetch(&mut self, cpu: usize, number: u64) {
        if self.cpus[cpu].l1i.touch(number) {
            return;
        }
        self.counts.l1i_misses += 1;
        let from = self.second_level(cpu, number, false, true);
        self.count(&from);
        self.cpus[cpu].l1i.insert(number, false);
    }
}
