//! Looks at this machine: what followers use, ten times a second; once a second where they stand; and once
//! a second, while CPUs are used by others, who these are, with which weight, in which cgroup and on which
//! CPUs. Uses are looked at more rarely where `/proc` is large, so that each takes two thousandths of a CPU
//! at most.

use crate::cgroups::{Groups, Hierarchy, Read, USUAL_WEIGHT};
use crate::demand::{Application, Demand, Mask};
use crate::machine::{COST_SHARE, Paced, Process, Ticks, age, mask_of, online, ticks_in_second};
use crate::steady::{Id, Look, Present};
use crate::waits::Waits;
use hearth_host::task;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What uses less of a CPU is no application, only load.
const ACTIVE_CPUS: f64 = 0.02;
/// Of the machine: with less idle, somebody waits.
const SATURATED: f64 = 0.05;
/// What a process used in less time than this says little: ticks are 10 ms.
const SHORT_S: f64 = 0.02;
/// Where others use less, it is not looked who they are.
const SOMEBODY_CPUS: f64 = 0.1;

/// A process that is to have a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Following {
    /// Which.
    pub id: Id,
    /// CPUs that it would use at most; 0: all.
    pub want: u32,
    /// CPUs that it was told lately, by whoever led; 0: none.
    pub told: u32,
}

/// Looks at the machine again and again.
#[derive(Debug)]
pub struct Observer {
    hierarchy: Option<Hierarchy>,
    machine: Mask,
    scans: Paced,
    scan: Scan,
    /// Where followers stand, and what their cgroups have.
    places: HashMap<Id, Place>,
    cgroups: Read,
    placed: Paced,
    counts: Paced,
    uses: Uses,
    is_thorough: bool,
}

impl Observer {
    /// One that has not looked yet.
    pub fn new() -> Self {
        Self {
            hierarchy: Hierarchy::find(),
            machine: online(),
            scans: Paced::new(Duration::from_secs(1), COST_SHARE),
            scan: Scan::default(),
            places: HashMap::new(),
            cgroups: Read::new(),
            placed: Paced::new(Duration::from_secs(1), COST_SHARE),
            counts: Paced::new(Duration::ZERO, COST_SHARE),
            uses: Uses::default(),
            is_thorough: false,
        }
    }

    /// One that looks at everything each time, whatever that costs.
    pub fn thorough() -> Self {
        let always = || Paced::new(Duration::ZERO, f64::INFINITY);
        Self { scans: always(), counts: always(), is_thorough: true, ..Self::new() }
    }

    /// What others than the followers use, in CPUs.
    pub fn others_use(&self) -> f64 {
        self.uses.others
    }

    /// What the last look at all processes took.
    pub fn scan_cost(&self) -> Duration {
        self.scans.cost
    }

    /// The machine as it is now.
    pub fn look(&mut self, now: Instant, following: &[Following]) -> Look {
        self.meet(now, following);
        // A first look at all processes takes long, and is no part of what is counted next.
        let is_first = self.uses.at.is_none();
        if !is_first {
            self.counts.look(now, || self.uses.count(now, following));
        }
        if self.is_thorough || self.uses.others >= SOMEBODY_CPUS {
            self.scans.look(now, || self.scan.look(now, self.hierarchy.as_ref()));
        }
        self.placed.look(now, || {
            self.machine = online();
            self.places.clear();
            self.cgroups.clear();
        });
        if is_first {
            self.uses.count(Instant::now(), following);
        }
        self.demand(following)
    }

    /// The machine as it was at the last look, with those that follow now.
    pub fn recall(&mut self, now: Instant, following: &[Following]) -> Look {
        self.meet(now, following);
        self.demand(following)
    }

    /// Newcomers, and what they used before they came: that was no use of others.
    fn meet(&mut self, now: Instant, following: &[Following]) {
        self.uses.followers.retain(|id, _| following.iter().any(|one| one.id == *id));
        for Following { id, .. } in following {
            if self.uses.followers.contains_key(id) {
                continue;
            }
            let Some(process) = Process::now(id.0).filter(|process| process.start == id.1) else { continue };
            let (since, ticks) = self.scan.ticks_of(*id, now).unwrap_or((age(id.1), 0));
            let used_ticks = process.ticks.saturating_sub(ticks) as f64;
            let before = used_ticks / ticks_in_second() / since.max(SHORT_S);
            // Since the last count it has used so much already.
            let counted = self.uses.at.map_or(0.0, |(at, _)| (now - at).as_secs_f64()).min(since);
            let fresh = (before * counted * ticks_in_second()).min(used_ticks) as u64;
            self.uses.followers.insert(*id, Used { ticks: process.ticks - fresh, cpus: 0.0, before });
        }
    }

    fn demand(&mut self, following: &[Following]) -> Look {
        let mut demand = Demand::of_machine(self.machine.clone());
        let mut groups = Groups::new(self.hierarchy.as_ref(), &mut self.cgroups, &mut demand);
        let mut followers = Vec::new();
        self.places.retain(|id, _| following.iter().any(|one| one.id == *id));
        for Following { id, want, told } in following {
            let place = self.places.entry(*id).or_insert_with(|| {
                let weight = Process::now(id.0).map_or(USUAL_WEIGHT, |process| process.weight);
                Place::of(id.0, weight, self.hierarchy.as_ref())
            });
            let Used { cpus: used, before, .. } = self.uses.followers.get(id).copied().unwrap_or_default();
            let application = demand.applications.len();
            followers.push(Present { id: *id, application, used, before, told: *told });
            let most = demand.cpus();
            let want = if *want == 0 { most } else { f64::from(*want).min(most) };
            place.join(&mut demand, &mut groups, want);
        }
        let mut others = Vec::new();
        for other in self.scan.others.iter().filter(|other| following.iter().all(|one| one.id != other.id)) {
            others.push((demand.applications.len(), other.used));
            other.place.join(&mut demand, &mut groups, other.wants(self.uses.is_saturated));
        }
        Look { demand, followers, others, others_use: self.uses.others }
    }
}

impl Default for Observer {
    fn default() -> Self {
        Self::new()
    }
}

/// Where an application stands, which seldom changes.
#[derive(Clone, Debug)]
struct Place {
    cgroup: PathBuf,
    mask: Mask,
    weight: f64,
}

impl Place {
    fn of(pid: i32, weight: f64, hierarchy: Option<&Hierarchy>) -> Self {
        Self {
            cgroup: hierarchy.map(|hierarchy| hierarchy.of_process(pid)).unwrap_or_default(),
            mask: mask_of(pid),
            weight,
        }
    }

    fn join(&self, demand: &mut Demand, groups: &mut Groups<'_>, want: f64) {
        let group = groups.group(demand, &self.cgroup);
        let mask = demand.mask(&self.mask);
        demand.applications.push(Application { group, weight: self.weight, mask, want });
    }
}

/// CPUs that are used, by the kernel's counts of ticks.
#[derive(Debug, Default)]
struct Uses {
    at: Option<(Instant, Ticks)>,
    followers: HashMap<Id, Used>,
    others: f64,
    is_saturated: bool,
}

/// What a follower uses.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    /// When it was last counted.
    ticks: u64,
    /// CPUs, since the time before.
    cpus: f64,
    /// CPUs, before it followed.
    before: f64,
}

impl Uses {
    fn count(&mut self, now: Instant, following: &[Following]) {
        let Some(ticks) = Ticks::now() else { return };
        let since = self.at.replace((now, ticks));
        let second = ticks_in_second() * since.map_or(1.0, |(at, _)| (now - at).as_secs_f64().max(1e-3));
        let mut followers_ticks = 0;
        for Following { id, .. } in following {
            let Some(process) = Process::now(id.0).filter(|process| process.start == id.1) else { continue };
            let Some(used) = self.followers.get_mut(id) else { continue };
            let more = process.ticks.saturating_sub(used.ticks);
            followers_ticks += more;
            *used = Used { ticks: process.ticks, cpus: more as f64 / second, ..*used };
        }
        let Some((_, before)) = since else { return };
        let busy = ticks.busy.saturating_sub(before.busy);
        let idle = ticks.idle.saturating_sub(before.idle);
        self.others = busy.saturating_sub(followers_ticks) as f64 / second;
        self.is_saturated = (idle as f64) < SATURATED * (busy + idle) as f64;
    }
}

/// Something that used CPUs when all processes were looked at.
#[derive(Clone, Debug)]
struct Other {
    id: Id,
    place: Place,
    used: f64,
    /// CPUs that it waited for, where that is known.
    waited: Option<f64>,
    threads: f64,
}

impl Other {
    /// What it would use if it waited for nobody. Where it is not known what it waited for, and CPUs are
    /// short, most of a CPU is taken for a thread that had to wait, and a small part for one that sleeps.
    fn wants(&self, are_short: bool) -> f64 {
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
struct Scan {
    at: Option<Instant>,
    ticks: HashMap<i32, (u64, u64)>,
    others: Vec<Other>,
    waits: HashMap<Id, Waits>,
}

impl Scan {
    /// When a process was looked at, in seconds before `now`, and its ticks then.
    fn ticks_of(&self, id: Id, now: Instant) -> Option<(f64, u64)> {
        let (_, ticks) = self.ticks.get(&id.0).filter(|(start, _)| *start == id.1)?;
        Some(((now - self.at?).as_secs_f64(), *ticks))
    }

    fn look(&mut self, now: Instant, hierarchy: Option<&Hierarchy>) {
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
    use std::process::{Child, Command};

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
}
