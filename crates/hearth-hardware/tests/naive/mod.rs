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

/// A cache of a level, and who is behind it: for each CPU that has ways of its own an array, one if none has.
#[derive(Clone, Debug)]
struct Instance {
    parts: Vec<Lru>,
    first_cpu: usize,
    cpus: usize,
}

impl Instance {
    fn new(cache: &Cache, line_bytes: u64, first_cpu: usize) -> Self {
        let whole = Lru::new(cache, line_bytes);
        let parts = match cache.is_parted {
            false => vec![whole],
            true => vec![Lru { ways: cache.ways as usize / cache.shared_by, ..whole }; cache.shared_by],
        };
        Self { parts, first_cpu, cpus: cache.shared_by }
    }

    fn serves(&self, cpu: usize) -> bool {
        (self.first_cpu..self.first_cpu + self.cpus).contains(&cpu)
    }

    fn find(&mut self, number: u64) -> Option<&mut Line> {
        self.parts.iter_mut().find_map(|part| part.find(number))
    }

    fn take(&mut self, number: u64) -> Option<Line> {
        self.parts.iter_mut().find_map(|part| part.take(number))
    }

    fn touch(&mut self, number: u64) -> bool {
        self.parts.iter_mut().any(|part| part.touch(number))
    }

    fn insert(&mut self, cpu: usize, number: u64, dirty: bool) -> Option<Line> {
        let part = (cpu - self.first_cpu).min(self.parts.len() - 1);
        self.parts[part].insert(number, dirty)
    }
}

/// All caches of one level and kind.
#[derive(Clone, Debug)]
struct Level {
    holds: Holds,
    instances: Vec<Instance>,
}

impl Level {
    fn of(&mut self, cpu: usize) -> &mut Instance {
        self.instances.iter_mut().find(|instance| instance.serves(cpu)).expect("every CPU has one")
    }

    fn is_private(&self) -> bool {
        self.instances[0].cpus == 1
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

pub struct Naive {
    /// From the CPU outwards; a split first level is two.
    levels: Vec<Level>,
    cpus: usize,
    /// Whether caches supply their neighbours with what they have clean, too. All CPUs are of one node.
    has_node_bus: bool,
    pub counts: Counts,
}

impl Naive {
    pub fn new(machine: &Machine) -> Self {
        let level = |cache: &Cache| Level {
            holds: cache.holds,
            instances: (0..machine.cpus())
                .step_by(cache.shared_by)
                .map(|first| Instance::new(cache, machine.line_bytes, first))
                .collect(),
        };
        Self {
            levels: machine.caches.iter().map(level).collect(),
            cpus: machine.cpus(),
            has_node_bus: machine.memory.has_node_bus,
            counts: Counts::default(),
        }
    }

    /// The first level that is behind the first.
    fn second(&self) -> usize {
        if self.levels[0].holds == Holds::Both { 1 } else { 2 }
    }

    /// The outermost level that holds data.
    fn last(&self) -> usize {
        (0..self.levels.len())
            .rev()
            .find(|&level| self.levels[level].holds != Holds::Instructions)
            .expect("one")
    }

    /// Whether coherence looks after code: if the last level has it.
    fn tracks_code(&self) -> bool {
        self.levels[self.last()].holds == Holds::Both
    }

    fn is_tracked(&self, level: usize) -> bool {
        self.levels[level].holds != Holds::Instructions || self.tracks_code()
    }

    /// The levels of a CPU's own that count as losing a line: the first, and a private second that is not the last.
    fn is_own(&self, level: usize) -> bool {
        let is_second = level == self.second() && level != self.last() && self.levels[level].is_private();
        self.is_tracked(level) && (level < self.second() || is_second)
    }

    fn domain(&mut self, cpu: usize) -> usize {
        let last = self.last();
        self.levels[last].of(cpu).first_cpu
    }

    /// The levels that a reference goes through, the first one first.
    fn path(&self, code: bool) -> Vec<usize> {
        let kind = if code { Holds::Instructions } else { Holds::Data };
        let takes = |level: &usize| {
            let holds = self.levels[*level].holds;
            (holds == kind || holds == Holds::Both) && (*level < self.second() || !code || self.tracks_code())
        };
        (0..self.levels.len()).filter(takes).collect()
    }

    fn has_privately(&mut self, cpu: usize, number: u64) -> bool {
        (0..self.levels.len())
            .any(|level| self.is_own(level) && self.levels[level].of(cpu).find(number).is_some())
    }

    /// All tracked caches that do not serve a CPU.
    fn elsewhere(&mut self, cpu: usize) -> Vec<&mut Instance> {
        let tracked: Vec<bool> = (0..self.levels.len()).map(|level| self.is_tracked(level)).collect();
        let levels = self.levels.iter_mut().zip(tracked).filter(|(_, is_tracked)| *is_tracked);
        levels.flat_map(|(level, _)| &mut level.instances).filter(|instance| !instance.serves(cpu)).collect()
    }

    fn others_have(&mut self, cpu: usize, number: u64) -> bool {
        self.elsewhere(cpu).into_iter().any(|instance| instance.find(number).is_some())
    }

    /// Everyone else loses the line. Whether another domain had it modified.
    fn invalidate_others(&mut self, cpu: usize, number: u64) -> bool {
        for other in (0..self.cpus).filter(|&other| other != cpu) {
            self.counts.invalidations += u64::from(self.has_privately(other, number));
        }
        let domain = self.domain(cpu);
        let mut supplied = false;
        let mut modified = Vec::new();
        for instance in self.elsewhere(cpu) {
            if instance.take(number).is_some_and(|line| line.dirty) {
                modified.push(instance.first_cpu);
            }
        }
        for owner in modified {
            supplied |= self.domain(owner) != domain;
        }
        supplied
    }

    /// Whoever has the line modified gives the changes up. Whether that was in another domain.
    fn clean_others(&mut self, cpu: usize, number: u64) -> bool {
        let (domain, last) = (self.domain(cpu), self.last());
        let mut modified = Vec::new();
        for instance in self.elsewhere(cpu) {
            if instance.find(number).is_some_and(|line| std::mem::take(&mut line.dirty)) {
                modified.push(instance.first_cpu);
            }
        }
        let mut supplied = false;
        for owner in modified {
            let is_own = self.domain(owner) == domain;
            supplied |= !is_own;
            if is_own && let Some(line) = self.levels[last].of(cpu).find(number) {
                line.dirty = true;
            }
        }
        supplied
    }

    /// A line leaves a level, and with it the levels that it backs.
    fn leave(&mut self, level: usize, cpu: usize, victim: Line) {
        let Instance { first_cpu, cpus, .. } = *self.levels[level].of(cpu);
        let holds = self.levels[level].holds;
        let mut dirty = victim.dirty;
        for inner in &mut self.levels[..level] {
            if holds == Holds::Both || holds == inner.holds {
                let below = inner.instances.iter_mut();
                let below = below.filter(|inner| (first_cpu..first_cpu + cpus).contains(&inner.first_cpu));
                below.for_each(|inner| dirty |= inner.take(victim.number).is_some_and(|line| line.dirty));
            }
        }
        if !dirty {
            return;
        }
        let outer = self.path(false).into_iter().find(|&outer| outer > level);
        match outer.map(|outer| self.levels[outer].of(cpu).find(victim.number)) {
            Some(line) => line.expect("outer levels include inner ones").dirty = true,
            None => self.counts.write_backs += 1,
        }
    }

    fn reference(&mut self, cpu: usize, number: u64, write: bool, code: bool) {
        let path = self.path(code);
        let found = path.iter().position(|&level| self.levels[level].of(cpu).touch(number));
        if found == Some(0) {
            if write && self.others_have(cpu, number) {
                self.counts.upgrades += 1;
                self.invalidate_others(cpu, number);
            }
        } else {
            self.counts.l1i_misses += u64::from(code);
            self.counts.l1d_misses += u64::from(!code);
            let bypasses = code && !self.tracks_code();
            let supplied = match (bypasses, write) {
                (true, _) => false,
                (false, true) => self.invalidate_others(cpu, number),
                (false, false) => self.clean_others(cpu, number),
            };
            let (last, second) = (self.last(), self.second());
            for &level in path[..found.unwrap_or(path.len())].iter().rev() {
                if let Some(victim) = self.levels[level].of(cpu).insert(cpu, number, false) {
                    self.leave(level, cpu, victim);
                }
            }
            match found.map(|index| path[index]) {
                Some(level) if level == second && level != last => self.counts.l2_hits += 1,
                Some(_) => self.counts.llc_hits += 1,
                None => {
                    let of_last = self.levels[last].instances.iter_mut().filter(|other| !other.serves(cpu));
                    let neighbour_has_it = !bypasses && { of_last }.any(|other| other.find(number).is_some());
                    let from_cache = supplied || self.has_node_bus && neighbour_has_it;
                    self.counts.cache_to_cache += u64::from(from_cache);
                    self.counts.memory += u64::from(!from_cache);
                }
            }
        }
        if write {
            self.levels[path[0]].of(cpu).find(number).expect("just put there").dirty = true;
        }
    }

    pub fn data(&mut self, cpu: usize, number: u64, write: bool) {
        self.reference(cpu, number, write, false);
    }

    pub fn fetch(&mut self, cpu: usize, number: u64) {
        self.reference(cpu, number, false, true);
    }
}
