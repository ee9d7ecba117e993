//! The caches together: inclusion, write-invalidate coherence, write-backs, causes of misses.
//!
//! Each CPU has a first level and perhaps a private second one; a *domain* of CPUs shares a last level (a domain
//! may be one CPU, and its last level its first). Between them there may be more levels (`inner.rs`). Outer levels
//! include inner ones. A directory keeps for each
//! line which CPUs hold it privately and which domains hold it at all; a line that exactly one CPU
//! of one domain holds is that CPU's to write without asking (`owners.rs`).

mod caches;
mod inner;
mod members;
mod owners;

use crate::cache::{CODE, Cache, DIRTY, Entry, LINES, OWNED, line_of, mark};
use crate::counters::{Cause, add};
use crate::last_level::LastLevel;
use crate::levels::Levels;
use crate::port::Port;
pub(crate) use caches::Caches;
use hearth_machine::{Holds, Machine};
use inner::Inner;
use members::{Members, Set};
use std::rc::Rc;

/// Who served a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    L1,
    /// A hit, but other caches had to be told of the store.
    Upgrade,
    /// The private second level.
    L2,
    /// A level between that and the last, by its number.
    Inner(u8),
    Llc,
    /// Memory, or the cache of another CPU: [`Caches::transfer`] says more.
    Beyond,
}

impl Served {
    /// The first two levels did not have it.
    pub(crate) fn is_beyond_l2(self) -> bool {
        matches!(self, Served::Llc | Served::Beyond | Served::Inner(3..))
    }
}

/// What a line cost that a domain did not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// The CPU from whose cache it came; nothing if from memory.
    pub(crate) supplier: Option<usize>,
    /// Whether another domain of the CPU's node has it, too.
    pub(crate) neighbour_has_it: bool,
    /// A modified line that had to leave to make room.
    pub(crate) write_back: Option<u32>,
}

/// Of a line that a domain does not hold: never held, lost to another CPU's store, or else 1 + the
/// number of the task that replaced it.
type Departure = u16;
const NEVER: Departure = 0;
const INVALIDATED: Departure = u16::MAX;

/// Makes room in an array. What is new all at once takes none of the host's memory until it is used.
fn widen<T: Clone>(array: &mut Vec<T>, length: usize, value: T) {
    if array.is_empty() {
        *array = vec![value; length];
    } else {
        array.resize(length, value);
    }
}

struct Domain<S> {
    llc: LastLevel,
    first_cpu: usize,
    /// By line; empty if nobody counts causes.
    departures: Vec<Departure>,
    cpus: S,
}

impl<S> Domain<S> {
    /// What became of a line that left.
    #[inline(always)]
    fn departs(&mut self, line: u32, departure: Departure) {
        if let Some(of_line) = self.departures.get_mut(line as usize) {
            *of_line = departure;
        }
    }
}

/// The set of these members.
fn set<S: Set>(members: impl Iterator<Item = usize>) -> S {
    members.fold(S::NONE, |set, member| set | S::one(member))
}

/// All caches, with sets as `S`.
pub(crate) struct Hierarchy<S> {
    /// The private second level of each CPU, if there is one.
    l2s: Vec<Option<Cache>>,
    /// The levels between these and the last, from the CPU outwards. Most machines have none.
    inner: Vec<Inner<S>>,
    domains: Vec<Domain<S>>,
    /// The lines for which there is room.
    lines: usize,
    /// By line: the domains whose last level has it.
    holding: Members<S>,
    /// By line: the CPUs that have it in a private cache. Not kept where each domain is one
    /// CPU: there whoever has it privately is among `holding`.
    cpus: Members<S>,
    one_cpu_domains: bool,
    domain_of: Vec<usize>,
    /// By domain: the others of its node.
    neighbours: Vec<S>,
    ports: Vec<Rc<Port>>,
    l2_fetches: bool,
    llc_fetches: bool,
    /// The first level is the last.
    is_one_level: bool,
    /// The last that there was. Beside [`Served`], which has to stay small: most references need it only.
    transfer: Transfer,
    counts_causes: bool,
}

impl<S: Set> Hierarchy<S> {
    fn new(machine: &Machine, levels: &Levels<'_>, ports: Vec<Rc<Port>>) -> Self {
        let line = machine.line_bytes;
        let cpus = machine.cpus();
        let (l2, domain_cpus) = (levels.l2, levels.domain_cpus());
        let first_inner = if l2.is_some() { 3 } else { 2 };
        let domain = |first: usize| Domain {
            llc: levels.llc.map_or_else(LastLevel::none, |llc| LastLevel::new(llc, line)),
            first_cpu: first,
            departures: Vec::new(),
            cpus: set(first..first + domain_cpus),
        };
        let domains: Vec<Domain<S>> = (0..cpus).step_by(domain_cpus).map(domain).collect();
        let node_of: Vec<usize> = domains.iter().map(|domain| machine.node_of(domain.first_cpu)).collect();
        let neighbours = |domain: usize| {
            let of_node = |other: &usize| *other != domain && node_of[*other] == node_of[domain];
            set((0..domains.len()).filter(of_node))
        };
        Self {
            neighbours: (0..domains.len()).map(neighbours).collect(),
            l2s: (0..cpus).map(|_| l2.map(|l2| Cache::new(l2, line))).collect(),
            inner: (first_inner..)
                .zip(&levels.inner)
                .map(|(level, inner)| Inner::new(level, inner, machine))
                .collect(),
            lines: 0,
            holding: Members::new(domains.len()),
            cpus: Members::new(cpus),
            domains,
            one_cpu_domains: domain_cpus == 1,
            domain_of: (0..cpus).map(|cpu| cpu / domain_cpus).collect(),
            ports,
            l2_fetches: l2.is_some_and(|l2| l2.holds == Holds::Both),
            llc_fetches: levels.llc.unwrap_or(levels.l1d).holds == Holds::Both,
            is_one_level: levels.llc.is_none(),
            transfer: Transfer::default(),
            counts_causes: true,
        }
    }

    fn count_no_causes(&mut self) {
        self.counts_causes = false;
        self.domains.iter_mut().for_each(|domain| domain.departures = Vec::new());
    }

    fn grow(&mut self, lines: usize) {
        assert!(lines < LINES as usize, "the simulated memory is limited to {LINES} lines");
        if self.lines < lines {
            self.lines = lines;
            self.holding.grow(lines);
            self.inner.iter_mut().for_each(|inner| inner.grow(lines));
            self.cpus.grow(if self.one_cpu_domains { 0 } else { lines });
            if self.counts_causes {
                self.domains.iter_mut().for_each(|domain| widen(&mut domain.departures, lines, NEVER));
            }
        }
    }

    /// CPUs that may have a line in a private cache, as bits.
    #[inline(always)]
    fn cpus_of(&self, line: u32) -> S {
        if self.one_cpu_domains { self.holding.of(line) } else { self.cpus.of(line) }
    }

    #[inline(always)]
    fn add_cpu(&mut self, line: u32, cpu: usize) {
        if !self.one_cpu_domains {
            self.cpus.add(line, S::one(cpu));
        }
    }

    #[inline(always)]
    fn keep_cpus(&mut self, line: u32, cpus: S) {
        if !self.one_cpu_domains {
            self.cpus.keep(line, cpus);
        }
    }

    /// A store to a line that the first level has and does not own.
    fn store_shared(&mut self, port: &Port, line: u32) -> Served {
        if !self.take_ownership(port.index(), line) {
            return Served::L1;
        }
        add(&port.counting.upgrades, 1);
        Served::Upgrade
    }

    /// A load or store that missed the first level.
    #[inline]
    fn data(&mut self, port: &Port, line: u32, write: bool) -> Served {
        let (flags, served) = self.second_level(port, line, write, false);
        let dirty = if write { DIRTY } else { 0 };
        if let Some(victim) = port.l1d.insert(line, flags | dirty) {
            self.leave_l1d(port.index(), victim);
        }
        add(&port.counting.l1d_misses, 1);
        self.count_level(port, served);
        served
    }

    /// An instruction fetch that missed the first level.
    #[inline]
    fn fetch(&mut self, port: &Port, line: u32) -> Served {
        let (_, served) = self.second_level(port, line, false, true);
        if let Some(victim) = port.code().insert(line, 0) {
            match port.is_unified() {
                true => self.leave_l1d(port.index(), victim),
                false => self.leave_l1i(port, line_of(victim)),
            }
        }
        add(&port.counting.l1i_misses, 1);
        self.count_level(port, served);
        add(&port.counting.instruction_misses, u64::from(served == Served::Beyond));
        served
    }

    #[inline(always)]
    fn count_level(&self, port: &Port, served: Served) {
        match served {
            Served::L2 | Served::Inner(..=2) => add(&port.counting.l2_hits, 1),
            Served::Llc | Served::Inner(_) => add(&port.counting.llc_hits, 1),
            Served::Beyond => {
                add(&port.counting.write_backs, u64::from(self.transfer.write_back.is_some()));
            }
            _ => {}
        }
    }

    /// A line has left one of a CPU's private caches, perhaps the last of them that had it.
    #[inline(always)]
    fn forget_holder(&mut self, cpu: usize, line: u32) {
        if !self.one_cpu_domains {
            self.forget_if_gone(cpu, line);
        }
    }

    fn forget_if_gone(&mut self, cpu: usize, line: u32) {
        let held = self.ports[cpu].l1d.peek(line).is_some()
            || self.l2s[cpu].as_ref().is_some_and(|l2| l2.peek(line).is_some())
            || self.llc_fetches && self.ports[cpu].code().peek(line).is_some();
        if !held {
            self.keep_cpus(line, S::one(cpu).others());
        }
    }

    #[inline(always)]
    fn leave_l1d(&mut self, cpu: usize, victim: Entry) {
        if self.is_one_level {
            self.transfer.write_back = self.leave_llc(self.ports[cpu].task(), self.domain_of[cpu], victim);
            return;
        }
        let line = line_of(victim);
        if victim & DIRTY != 0 {
            self.write_out(cpu, line);
        }
        if self.l2s[cpu].is_none() {
            self.forget_holder(cpu, line);
        }
    }

    /// What left the first level modified is so in the next one.
    fn write_out(&self, cpu: usize, line: u32) {
        let outer = match &self.l2s[cpu] {
            Some(l2) => l2.peek(line),
            None => self.domains[self.domain_of[cpu]].llc.peek(line),
        };
        if let Some(outer) = outer {
            mark(outer, DIRTY);
        }
    }

    fn leave_l1i(&mut self, port: &Port, line: u32) {
        let cpu = port.index();
        if !self.llc_fetches {
            self.domains[self.domain_of[cpu]].departs(line, port.task() + 1);
        } else if !self.l2_fetches {
            self.forget_holder(cpu, line);
        }
    }

    /// A miss of the first level. Returns the entry's flags for it. Made once for data, and once for code.
    #[inline(always)]
    fn second_level(&mut self, port: &Port, line: u32, write: bool, code: bool) -> (Entry, Served) {
        let cpu = port.index();
        let goes_through = !code || self.l2_fetches;
        let fetched = if code { CODE } else { 0 };
        if goes_through
            && let Some(l2) = &self.l2s[cpu]
            && let Some(entry) = l2.touch(line)
        {
            mark(entry, fetched);
            let owned = entry.get() & OWNED;
            if write && owned == 0 {
                mark(entry, OWNED);
                self.take_ownership(cpu, line);
                return (OWNED, Served::L2);
            }
            return (owned, Served::L2);
        }
        let (flags, served) = self.last_level(port, line, write, code);
        if goes_through
            && let Some(l2) = &self.l2s[cpu]
            && let Some(victim) = l2.insert(line, flags | fetched)
        {
            self.leave_l2(cpu, victim);
        }
        (flags, served)
    }

    #[inline(always)]
    fn leave_l2(&mut self, cpu: usize, victim: Entry) {
        let line = line_of(victim);
        let above = self.drop_l1(cpu, line, victim & CODE != 0).unwrap_or(0);
        if (victim | above) & DIRTY != 0
            && let Some(outer) = self.domains[self.domain_of[cpu]].llc.peek(line)
        {
            mark(outer, DIRTY);
        }
        self.forget_holder(cpu, line);
    }

    /// A miss of all private levels. Returns the entry's flags for them.
    #[inline(always)]
    fn last_level(&mut self, port: &Port, line: u32, write: bool, code: bool) -> (Entry, Served) {
        let cpu = port.index();
        let domain = self.domain_of[cpu];
        if code && !self.llc_fetches {
            self.classify(port, line, domain);
            self.transfer = Transfer::default();
            return (0, Served::Beyond);
        }
        let hit = self
            .inner_level(cpu, line, code)
            .or_else(|| self.domains[domain].llc.touch(line).then_some(Served::Llc));
        let is_shared = self.is_shared(line, cpu);
        let supplier = match (is_shared, write) {
            (false, _) => None,
            (true, true) => self.invalidate_others(cpu, line),
            (true, false) => self.downgrade_owner(line, domain),
        };
        let served = match hit {
            Some(level) => level,
            None => {
                self.classify(port, line, domain);
                let place = cpu - self.domains[domain].first_cpu;
                let victim = self.domains[domain].llc.insert(place, line, 0);
                let write_back = victim.and_then(|victim| self.leave_llc(port.task(), domain, victim));
                let neighbour_has_it = !(self.holding.of(line) & self.neighbours[domain]).is_empty();
                self.transfer = Transfer { supplier, neighbour_has_it, write_back };
                Served::Beyond
            }
        };
        self.fill_inner(cpu, line, code, served);
        self.holding.add(line, S::one(domain));
        self.add_cpu(line, cpu);
        // A store has taken it from all others.
        (if code || (is_shared && !write) { 0 } else { OWNED }, served)
    }

    fn classify(&mut self, port: &Port, line: u32, domain: usize) {
        let Some(&departure) = self.domains[domain].departures.get(line as usize) else { return };
        let cause = match departure {
            INVALIDATED => Cause::Coherence,
            replacer if replacer == port.task() + 1 => Cause::Self_,
            _ if port.moved() => Cause::Move,
            NEVER => Cause::FirstTouch,
            _ => Cause::Other,
        };
        add(&port.counting.causes[cause as usize], 1);
    }

    /// A line leaves a last-level cache, and with it the private caches below. Returns it if it has
    /// to be written to memory.
    #[inline(always)]
    fn leave_llc(&mut self, task: u16, domain: usize, victim: Entry) -> Option<u32> {
        let line = line_of(victim);
        let mut dirty = victim & DIRTY;
        let mut below = self.cpus_of(line) & self.domains[domain].cpus;
        while let Some(cpu) = below.pop() {
            dirty |= self.drop_private(cpu, line).unwrap_or(0) & DIRTY;
        }
        self.inner.iter_mut().for_each(|inner| inner.drop_below(line, self.domains[domain].cpus));
        self.keep_cpus(line, self.domains[domain].cpus.others());
        self.holding.keep(line, S::one(domain).others());
        self.domains[domain].departs(line, task + 1);
        if dirty == 0 {
            return None;
        }
        Some(line)
    }

    /// Takes a line out of a CPU's first level, of the instruction cache too if `code`; returns its flags
    /// if it was there.
    fn drop_l1(&self, cpu: usize, line: u32, code: bool) -> Option<Entry> {
        let port = &self.ports[cpu];
        let fetched = if code { port.code().remove(line) } else { None };
        port.l1d.remove(line).or(fetched)
    }

    /// Takes a line out of a CPU's private caches; returns its flags if it was there.
    #[inline(always)]
    fn drop_private(&self, cpu: usize, line: u32) -> Option<Entry> {
        let Some(l2) = &self.l2s[cpu] else { return self.drop_l1(cpu, line, self.llc_fetches) };
        let outer = l2.remove(line);
        let is_code = match (self.l2_fetches, outer) {
            (true, Some(entry)) => entry & CODE != 0,
            (true, None) => false,
            (false, _) => self.llc_fetches,
        };
        // The first level has no data that the second has not.
        if outer.is_none() && !is_code {
            return None;
        }
        let inner = self.drop_l1(cpu, line, is_code);
        inner.or(outer).map(|flags| flags | outer.unwrap_or(0))
    }

    fn drop_line(&mut self, line: u32) {
        let mut cpus = self.cpus_of(line);
        while let Some(cpu) = cpus.pop() {
            if self.drop_private(cpu, line).is_some() {
                add(&self.ports[cpu].counting.invalidations, 1);
            }
        }
        let mut holding = self.holding.of(line);
        while let Some(domain) = holding.pop() {
            if self.domains[domain].llc.remove(line).is_some() {
                self.domains[domain].departs(line, INVALIDATED);
            }
        }
        if !self.llc_fetches {
            self.ports.iter().for_each(|port| _ = port.code().remove(line));
        }
        self.inner.iter_mut().for_each(|inner| inner.drop_below(line, S::NONE.others()));
        self.keep_cpus(line, S::NONE);
        self.holding.keep(line, S::NONE);
    }

    fn flush(&mut self, cpu: usize) {
        let domain = self.domain_of[cpu];
        let entries: Vec<Entry> = match self.is_one_level {
            true => self.ports[cpu].l1d.entries().collect(),
            false => self.domains[domain].llc.entries().collect(),
        };
        for entry in entries {
            self.domains[domain].llc.remove(line_of(entry));
            self.leave_llc(self.ports[cpu].task(), domain, entry);
        }
        for port in self.ports.iter().filter(|port| self.domains[domain].cpus.has(port.index())) {
            let code: Vec<Entry> = port.code().entries().collect();
            code.into_iter().for_each(|entry| _ = port.code().remove(line_of(entry)));
        }
    }
}
