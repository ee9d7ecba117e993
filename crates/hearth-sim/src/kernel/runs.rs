//! Runs: stretches in which the same tasks ran side by side on the CPUs of a cache domain, as the cache-fair
//! paper counts them (Fedorova, Seltzer and Smith, section 4). A run ends when any CPU of the domain switches.
//! CPUs' clocks differ by a window at most, and so do the ends of a run.

use super::{Begin, Entry, Kernel};
use hearth_hardware::Counters;
use hearth_policy::snapshot::{Class, Run};

/// What is remembered of runs under way, and the runs that have ended.
pub(super) struct Runs {
    /// By CPU: where it was when its run began.
    begins: Vec<Option<Begin>>,
    cycle_ps: u64,
    ended: Vec<Run>,
    /// Of these, how many a planner has been told.
    told: usize,
}

/// What one CPU counted in a run.
struct Part {
    cpu: usize,
    ps: u64,
    counters: Counters,
}

impl Runs {
    pub(super) fn new(cpus: usize, cycle_ps: u64) -> Self {
        Self { begins: vec![None; cpus], cycle_ps, ended: Vec::new(), told: 0 }
    }

    /// Notes what each task of a run counted, and what the others beside it did.
    fn note(&mut self, parts: &[Part], who: impl Fn(usize) -> (i32, u64)) {
        for part in parts {
            let others = || parts.iter().filter(|other| other.cpu != part.cpu);
            let (tid, group) = who(part.cpu);
            self.ended.push(Run {
                tid,
                group,
                cpu: part.cpu,
                cycles: part.ps / self.cycle_ps,
                instructions: part.counters.instructions(),
                misses: part.counters.misses(),
                transfers: part.counters.transfers(),
                others_misses: others().map(|other| other.counters.misses()).sum(),
                others_transfers: others().map(|other| other.counters.transfers()).sum(),
                others: others().count() as u32,
            });
        }
    }
}

impl Kernel {
    /// What an application is for who makes up for unequal shares of caches.
    pub(crate) fn classify(&mut self, application: usize, class: Option<Class>) {
        if let Some(class) = class {
            self.classes.insert(application as u64 + 1, class);
            self.runs.get_or_insert_with(|| Runs::new(self.cpus.len(), self.ports[0].cycle_ps()));
        }
    }

    /// A CPU goes on with another task, or with none: before that it was at `end`.
    pub(super) fn end_runs_beside(&mut self, cpu: usize, end: Begin) {
        if self.planning.is_none() && !self.records_runs {
            return;
        }
        let Some(mut runs) = self.runs.take() else { return };
        let domain = self.domain_of[cpu];
        let mut parts = Vec::new();
        for other in (0..self.cpus.len()).filter(|&other| self.domain_of[other] == domain) {
            let now = if other == cpu { end } else { Begin::at(&self.ports[other]) };
            let begin = runs.begins[other].replace(now);
            if let Some((begin, _)) = begin.zip(self.cpus[other].current) {
                let (ps, counters) = now.since(begin);
                parts.push(Part { cpu: other, ps, counters });
            }
        }
        runs.note(&parts, |cpu| self.who(cpu));
        if self.planning.is_some() {
            self.charge_counting(cpu, &parts);
        }
        self.runs = Some(runs);
    }

    /// Each CPU reads its own counters; those where nobody switches are interrupted for it.
    fn charge_counting(&self, switching: usize, parts: &[Part]) {
        for part in parts {
            if part.cpu != switching {
                self.charge(part.cpu, Entry::Interrupt);
            }
            self.charge(part.cpu, Entry::Counters);
        }
    }

    /// Thread id and group of the task that runs on a CPU.
    fn who(&self, cpu: usize) -> (i32, u64) {
        self.cpus[cpu].current.map_or((0, 0), |task| {
            let sched = &self.tasks[task].scx.sched;
            (sched.pid, sched.group.get())
        })
    }

    /// The runs that have ended since this was last asked.
    pub(super) fn runs_to_tell(&mut self) -> Vec<Run> {
        let records = self.records_runs;
        let Some(runs) = &mut self.runs else { return Vec::new() };
        let new = runs.ended[runs.told..].to_vec();
        if !records {
            runs.ended.clear();
        }
        runs.told = runs.ended.len();
        new
    }

    /// All runs, if they were to be kept; those under way end now.
    pub(super) fn end_of_runs(&mut self) -> Vec<Run> {
        if !self.records_runs {
            return Vec::new();
        }
        let first_of_domain = |&cpu: &usize| cpu == 0 || self.domain_of[cpu - 1] != self.domain_of[cpu];
        let firsts: Vec<usize> = (0..self.cpus.len()).filter(first_of_domain).collect();
        firsts.into_iter().for_each(|cpu| self.end_runs_beside(cpu, Begin::at(&self.ports[cpu])));
        self.runs.take().map_or_else(Vec::new, |runs| runs.ended)
    }
}
