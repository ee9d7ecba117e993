//! Who may write a line: one CPU at a time, which takes it from all others (write-invalidate).

use super::members::Set;
use super::{Hierarchy, INVALIDATED};
use crate::cache::{DIRTY, OWNED, mark};
use crate::counters::add;

impl<S: Set> Hierarchy<S> {
    /// Whether any other CPU, or any other domain, has a line.
    #[inline]
    pub(super) fn is_shared(&self, line: u32, cpu: usize) -> bool {
        let others = self.holding.of(line) & S::one(self.domain_of[cpu]).others();
        !others.is_empty()
            || !self.one_cpu_domains && !(self.cpus.of(line) & S::one(cpu).others()).is_empty()
            || !self.inner.is_empty() && self.inner.iter().any(|inner| inner.is_elsewhere(line, cpu))
    }

    /// Makes this CPU the only holder of a line. Returns whether anyone had to be told.
    pub(super) fn take_ownership(&mut self, cpu: usize, line: u32) -> bool {
        let shared = self.is_shared(line, cpu);
        if shared {
            self.invalidate_others(cpu, line);
        }
        self.add_cpu(line, cpu);
        shared
    }

    /// Takes a line from everyone else. Returns a CPU of a domain that had it modified.
    pub(super) fn invalidate_others(&mut self, cpu: usize, line: u32) -> Option<usize> {
        let domain = self.domain_of[cpu];
        let mut supplier = None;
        let mut others = self.cpus_of(line) & S::one(cpu).others();
        while let Some(other) = others.pop() {
            let Some(flags) = self.drop_private(other, line) else { continue };
            add(&self.ports[other].counting.invalidations, 1);
            if flags & DIRTY != 0 && self.domain_of[other] != domain {
                supplier = Some(other);
            }
        }
        let mut others = self.holding.of(line) & S::one(domain).others();
        while let Some(other) = others.pop() {
            let flags = self.domains[other].llc.remove(line).unwrap_or(0);
            self.domains[other].departs(line, INVALIDATED);
            if flags & DIRTY != 0 {
                supplier = supplier.or(Some(self.domains[other].first_cpu));
            }
        }
        self.inner.iter_mut().for_each(|inner| inner.drop_elsewhere(line, cpu));
        self.keep_cpus(line, S::one(cpu));
        self.holding.keep(line, S::one(domain));
        supplier
    }

    /// Someone else reads a line: whoever owns it may no longer write it unasked, and gives up what it
    /// modified. Returns a CPU of another domain that had it modified.
    pub(super) fn downgrade_owner(&mut self, line: u32, domain: usize) -> Option<usize> {
        let (cpus, holding) = (self.cpus_of(line), self.holding.of(line));
        let mut flags = 0;
        let mut holder = None;
        if let Some(owner) = cpus.only() {
            holder = Some(owner);
            let l2 = self.l2s[owner].as_ref().and_then(|l2| l2.peek(line));
            for entry in [self.ports[owner].l1d.peek(line), l2].into_iter().flatten() {
                flags |= entry.get();
                entry.set(entry.get() & !(OWNED | DIRTY));
            }
        }
        if let Some(entry) = self.domains[domain].llc.peek(line) {
            mark(entry, flags & DIRTY);
            return None;
        }
        if let Some(owner) = holding.only() {
            let entry = self.domains[owner].llc.peek(line);
            flags |= entry.map_or(0, |entry| entry.replace(entry.get() & !DIRTY));
            if flags & DIRTY != 0 {
                return holder.or(Some(self.domains[owner].first_cpu));
            }
        }
        None
    }
}
