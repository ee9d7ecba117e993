//! Levels between the private ones and the last: a second level that two CPUs share below a third that all do, a
//! private third level below a fourth.
//!
//! They only know which lines are there. That a line is modified is kept in the private levels and, once it has
//! left those, in the last one, which has whatever an inner level has: what is written back is the same.

use super::{Hierarchy, Served, set};
use crate::cache::{Cache, DIRTY, Entry, line_of, mark};
use crate::coherence::members::{Members, Set};
use hearth_machine::{Holds, Machine};

/// One such level of all CPUs.
pub(super) struct Inner<S> {
    /// From 2.
    level: u8,
    instances: Vec<Instance<S>>,
    instance_of: Vec<usize>,
    fetches: bool,
    /// By line: the instances that have it.
    holding: Members<S>,
}

struct Instance<S> {
    cache: Cache,
    cpus: S,
}

impl<S: Set> Inner<S> {
    pub(super) fn new(level: u8, cache: &hearth_machine::Cache, machine: &Machine) -> Self {
        let cpus = machine.cpus();
        let instance = |first: usize| Instance {
            cache: Cache::new(cache, machine.line_bytes),
            cpus: set(first..first + cache.shared_by),
        };
        let instances: Vec<Instance<S>> = (0..cpus).step_by(cache.shared_by).map(instance).collect();
        Self {
            level,
            instance_of: (0..cpus).map(|cpu| cpu / cache.shared_by).collect(),
            fetches: cache.holds == Holds::Both,
            holding: Members::new(instances.len()),
            instances,
        }
    }

    pub(super) fn grow(&mut self, lines: usize) {
        self.holding.grow(lines);
    }

    /// Whether another instance than a CPU's has a line.
    pub(super) fn is_elsewhere(&self, line: u32, cpu: usize) -> bool {
        !(self.holding.of(line) & S::one(self.instance_of[cpu]).others()).is_empty()
    }

    /// Takes a line out of all instances but a CPU's.
    pub(super) fn drop_elsewhere(&mut self, line: u32, cpu: usize) {
        self.drop_below(line, self.instances[self.instance_of[cpu]].cpus.others());
    }

    /// Takes a line out of the instances of these CPUs.
    pub(super) fn drop_below(&mut self, line: u32, cpus: S) {
        let mut holding = self.holding.of(line);
        while let Some(index) = holding.pop() {
            if !(self.instances[index].cpus & cpus).is_empty() {
                self.instances[index].cache.remove(line);
                self.holding.keep(line, S::one(index).others());
            }
        }
    }
}

impl<S: Set> Hierarchy<S> {
    /// Looks a line up that the private levels do not have.
    #[inline(always)]
    pub(super) fn inner_level(&self, cpu: usize, line: u32, code: bool) -> Option<Served> {
        if self.inner.is_empty() { None } else { self.find_inner(cpu, line, code) }
    }

    fn find_inner(&self, cpu: usize, line: u32, code: bool) -> Option<Served> {
        let has = |inner: &&Inner<S>| {
            (!code || inner.fetches) && inner.instances[inner.instance_of[cpu]].cache.touch(line).is_some()
        };
        self.inner.iter().find(has).map(|inner| Served::Inner(inner.level))
    }

    /// Puts a line into the inner levels that did not have it, the outer ones first.
    #[inline(always)]
    pub(super) fn fill_inner(&mut self, cpu: usize, line: u32, code: bool, served: Served) {
        if !self.inner.is_empty() {
            self.fill_missed(cpu, line, code, served);
        }
    }

    fn fill_missed(&mut self, cpu: usize, line: u32, code: bool, served: Served) {
        let missed = |inner: &Inner<S>| match served {
            Served::Inner(level) => inner.level < level,
            _ => true,
        };
        for index in (0..self.inner.len()).rev() {
            let inner = &mut self.inner[index];
            if !missed(inner) || code && !inner.fetches {
                continue;
            }
            let instance = inner.instance_of[cpu];
            inner.holding.add(line, S::one(instance));
            if let Some(victim) = inner.instances[instance].cache.insert(line, 0) {
                self.leave_inner(index, instance, victim);
            }
        }
    }

    /// Takes a line out of a CPU's private caches, but as code.
    fn drop_data(&self, cpu: usize, line: u32) -> Option<Entry> {
        let outer = self.l2s[cpu].as_ref().and_then(|l2| l2.remove(line));
        let inner = self.ports[cpu].l1d.remove(line);
        inner.or(outer).map(|flags| flags | outer.unwrap_or(0))
    }

    /// A line leaves an instance of an inner level, and with it what is below.
    fn leave_inner(&mut self, index: usize, instance: usize, victim: Entry) {
        let line = line_of(victim);
        let Inner { fetches, instances, .. } = &self.inner[index];
        let (fetches, cpus) = (*fetches, instances[instance].cpus);
        let mut below = self.cpus_of(line) & cpus;
        let mut dirty = 0;
        while let Some(cpu) = below.pop() {
            let flags = if fetches { self.drop_private(cpu, line) } else { self.drop_data(cpu, line) };
            dirty |= flags.unwrap_or(0) & DIRTY;
            self.forget_holder(cpu, line);
        }
        self.inner[..=index].iter_mut().for_each(|inner| inner.drop_below(line, cpus));
        let Some(first) = cpus.lowest() else { return };
        if let Some(outer) = self.domains[self.domain_of[first]].llc.peek(line) {
            mark(outer, dirty);
        }
    }
}
