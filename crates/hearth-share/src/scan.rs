//! Who else uses CPUs: all processes, as they were when they were last looked at.

use crate::cgroups::Hierarchy;
use crate::machine::{Process, ticks_in_second};
use crate::observe::Place;
use crate::steady::Id;
use crate::waits::Waits;
use hearth_host::task;
use hearth_host::times::Pass;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// What uses less of a CPU is no application, only load.
const ACTIVE_CPUS: f64 = 0.02;

/// Something that used CPUs when all processes were looked at.
#[derive(Clone, Debug)]
pub(crate) struct Other {
    pub id: Id,
    pub place: Place,
    /// CPUs.
    pub used: f64,
    /// CPUs that it waited for, where that is known.
    waited: Option<f64>,
    threads: f64,
}

impl Other {
    /// What it would use if it waited for nobody. Where it is not known what it waited for, and CPUs are
    /// short, most of a CPU is taken for a thread that had to wait, and a small part for one that sleeps.
    pub fn wants(&self, are_short: bool) -> f64 {
        let most = self.threads.max(self.used);
        match self.waited {
            Some(waited) => (self.used + waited).min(most),
            None if are_short && self.used.fract() >= 0.5 => self.used.ceil().min(most),
            None => self.used,
        }
    }
}

/// All processes, as they were when they were looked at.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    at: Option<Instant>,
    ticks: HashMap<i32, (u64, u64)>,
    pub others: Vec<Other>,
    waits: HashMap<Id, Waits>,
    /// What was told, if that was in place of a look.
    pass: Option<Arc<Pass>>,
}

impl Scan {
    /// Whether it is what somebody told.
    pub fn is_told(&self) -> bool {
        self.pass.is_some()
    }

    /// When a process was looked at, in seconds before `now`, and its ticks then.
    pub fn ticks_of(&self, id: Id, now: Instant) -> Option<(f64, u64)> {
        let (_, ticks) = self.ticks.get(&id.0).filter(|(start, _)| *start == id.1)?;
        Some(((now - self.at?).as_secs_f64(), *ticks))
    }

    /// The same from what somebody tells of all tasks.
    pub fn hear(&mut self, pass: Arc<Pass>, hierarchy: Option<&Hierarchy>) {
        let before = self.pass.take_if(|before| before.at_ns < pass.at_ns);
        if self.pass.is_some() {
            return;
        }
        *self = Self { pass: Some(Arc::clone(&pass)), ..Self::default() };
        let Some(before) = before else { return };
        let cpus = |ns: u64| ns as f64 / (pass.at_ns - before.at_ns) as f64;
        for (pid, spent) in pass.since(&before) {
            let used = cpus(spent.ran_ns);
            let active = (used >= ACTIVE_CPUS).then(|| Process::now(pid)).flatten();
            self.others.extend(active.map(|process| Other {
                id: (pid, process.start),
                place: Place::of(pid, process.weight, hierarchy),
                used,
                waited: Some(cpus(spent.waited_ns)),
                threads: process.threads,
            }));
        }
    }

    pub fn look(&mut self, now: Instant, hierarchy: Option<&Hierarchy>) {
        self.pass = None;
        let since = self.at.replace(now);
        let seconds = since.map_or(1.0, |at| (now - at).as_secs_f64().max(1e-3));
        let before = std::mem::take(&mut self.ticks);
        let waited_before = std::mem::take(&mut self.waits);
        self.others.clear();
        for pid in task::processes() {
            let Some(process) = Process::now(pid) else { continue };
            self.ticks.insert(pid, (process.start, process.ticks));
            let Some((start, ticks)) = before.get(&pid).filter(|_| since.is_some()) else { continue };
            let used = process.ticks.saturating_sub(*ticks) as f64 / ticks_in_second() / seconds;
            if *start == process.start && used >= ACTIVE_CPUS {
                let place = Place::of(pid, process.weight, hierarchy);
                let id = (pid, process.start);
                let waits = Waits::now(pid);
                let waited =
                    waits.as_ref().zip(waited_before.get(&id)).map(|(now, before)| now.since_ns(before));
                self.waits.extend(waits.map(|waits| (id, waits)));
                let waited = waited.map(|waited_ns| waited_ns as f64 / 1e9 / seconds);
                self.others.push(Other { id, place, used, waited, threads: process.threads });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::online;
    use hearth_host::times::TaskTimes;
    use std::process::{Child, Command};
    use std::time::Duration;

    /// A program with one thread that never sleeps.
    struct Spinner(Child);

    impl Spinner {
        fn start() -> Self {
            Self(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
        }

        /// The other that it is, when it is known what it waits for.
        fn find(&self, scan: &Scan) -> Option<Other> {
            let is_it = |other: &&Other| other.id.0 == self.0.id() as i32 && other.waited.is_some();
            scan.others.iter().find(is_it).cloned()
        }
    }

    impl Drop for Spinner {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_program_that_never_sleeps_wants_a_cpu_however_much_of_one_it_gets() {
        if Waits::now(std::process::id() as i32).is_none() {
            println!("skipped: this kernel does not count for how long threads wait");
            return;
        }
        let spinners: Vec<_> = (0..2 * online().len()).map(|_| Spinner::start()).collect();
        let (mut scan, begin) = (Scan::default(), Instant::now());
        let mut at = begin;
        loop {
            assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", scan.others);
            // Ticks are coarse.
            if at.elapsed() >= Duration::from_millis(300) {
                at = Instant::now();
                scan.look(at, None);
            }
            let wants: Vec<_> =
                spinners.iter().filter_map(|spinner| Some(spinner.find(&scan)?.wants(false))).collect();
            if wants.len() == spinners.len() && wants.iter().all(|wants| *wants > 0.8) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    #[test]
    fn what_is_told_of_all_tasks_says_who_uses_and_waits() {
        let own = std::process::id() as i32;
        let pass = |at_ns, ran_ns, waited_ns| {
            let own_task = TaskTimes { tid: own, process: own, ran_ns, waited_ns };
            let idle = TaskTimes { tid: 1, process: 1, ran_ns: 5, waited_ns: 0 };
            Arc::new(Pass { at_ns, tasks: vec![own_task, idle] })
        };
        let mut scan = Scan::default();
        scan.hear(pass(1_000, 0, 0), None);
        assert!(scan.others.is_empty(), "one pass says nothing yet");
        for _ in 0..2 {
            scan.hear(pass(2_000, 250, 500), None);
            let seen: Vec<_> =
                scan.others.iter().map(|other| (other.id.0, other.used, other.waited)).collect();
            assert_eq!(seen, [(own, 0.25, Some(0.5))], "the same pass again is nothing new");
        }
    }
}
