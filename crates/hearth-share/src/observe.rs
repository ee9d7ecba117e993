//! Looks at this machine: what followers use, ten times a second; once a second where they stand, and
//! who else uses CPUs, with which weight, in which cgroup and on which CPUs. Uses are looked at more
//! rarely where `/proc` is large, so that each takes two thousandths of a CPU at most.

use crate::cgroups::{Groups, Hierarchy, Read, USUAL_WEIGHT};
use crate::demand::{Application, Demand, Mask};
use crate::machine::{Paced, Process, Ticks, mask_of, online, ticks_in_second};
use crate::steady::{Id, Look, Present};
use hearth_host::task;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What uses less of a CPU is no application, only load.
const ACTIVE_CPUS: f64 = 0.02;
/// Of the machine: with less idle, somebody waits.
const SATURATED: f64 = 0.05;

/// A process that is to have a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Following {
    /// Which.
    pub id: Id,
    /// CPUs that it would use at most; 0: all.
    pub want: u32,
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
}

impl Observer {
    /// One that has not looked yet.
    pub fn new() -> Self {
        Self {
            hierarchy: Hierarchy::find(),
            machine: online(),
            scans: Paced::new(Duration::from_secs(1)),
            scan: Scan::default(),
            places: HashMap::new(),
            cgroups: Read::new(),
            placed: Paced::new(Duration::from_secs(1)),
            counts: Paced::new(Duration::ZERO),
            uses: Uses::default(),
        }
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
        // The first look at all processes takes long, and is no part of what is counted next.
        let is_first = self.uses.at.is_none();
        if !is_first {
            self.counts.look(now, || self.uses.count(now, following));
        }
        self.scans.look(now, || self.scan.look(now, self.hierarchy.as_ref()));
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

    /// The same, with all processes, whatever that costs.
    pub fn look_again(&mut self, now: Instant, following: &[Following]) -> Look {
        self.scans = Paced::new(Duration::ZERO);
        self.counts = Paced::new(Duration::ZERO);
        self.look(now, following)
    }

    fn demand(&mut self, following: &[Following]) -> Look {
        let mut demand = Demand::of_machine(self.machine.clone());
        let mut groups = Groups::new(self.hierarchy.as_ref(), &mut self.cgroups, &mut demand);
        let mut followers = Vec::new();
        self.places.retain(|id, _| following.iter().any(|one| one.id == *id));
        for Following { id, want } in following {
            let place = self.places.entry(*id).or_insert_with(|| {
                let weight = Process::now(id.0).map_or(USUAL_WEIGHT, |process| process.weight);
                Place::of(id.0, weight, self.hierarchy.as_ref())
            });
            let used = self.uses.followers.get(id).map_or(0.0, |(_, used)| *used);
            followers.push(Present { id: *id, application: demand.applications.len(), used });
            let most = demand.cpus();
            let want = if *want == 0 { most } else { f64::from(*want).min(most) };
            place.join(&mut demand, &mut groups, want);
        }
        let mut others = Vec::new();
        for other in self.scan.others.iter().filter(|other| following.iter().all(|one| one.id != other.id)) {
            others.push((demand.applications.len(), other.used));
            let wants = if self.uses.is_saturated { other.wants_if_it_waits() } else { other.used };
            other.place.join(&mut demand, &mut groups, wants);
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
    /// The ticks of each follower, and the CPUs that it used since the time before.
    followers: HashMap<Id, (u64, f64)>,
    others: f64,
    is_saturated: bool,
}

impl Uses {
    fn count(&mut self, now: Instant, following: &[Following]) {
        let Some(ticks) = Ticks::now() else { return };
        let since = self.at.replace((now, ticks));
        let second = ticks_in_second() * since.map_or(1.0, |(at, _)| (now - at).as_secs_f64().max(1e-3));
        let mut followers_ticks = 0;
        let mut followers = HashMap::new();
        for Following { id, .. } in following {
            let Some(process) = Process::now(id.0).filter(|process| process.start == id.1) else { continue };
            let before = self.followers.get(id).map_or(process.ticks, |(ticks, _)| *ticks);
            let more = process.ticks.saturating_sub(before);
            followers_ticks += more;
            followers.insert(*id, (process.ticks, more as f64 / second));
        }
        self.followers = followers;
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
    threads: f64,
}

impl Other {
    /// What it would use if it waited for nobody. Where CPUs are short, most of a CPU is a thread that
    /// had to wait; a small part is one that sleeps.
    fn wants_if_it_waits(&self) -> f64 {
        if self.used.fract() >= 0.5 { self.used.ceil().min(self.threads.max(self.used)) } else { self.used }
    }
}

/// All processes, as they were when they were looked at.
#[derive(Debug, Default)]
struct Scan {
    at: Option<Instant>,
    ticks: HashMap<i32, (u64, u64)>,
    others: Vec<Other>,
}

impl Scan {
    fn look(&mut self, now: Instant, hierarchy: Option<&Hierarchy>) {
        let since = self.at.replace(now);
        let second = ticks_in_second() * since.map_or(1.0, |at| (now - at).as_secs_f64().max(1e-3));
        let before = std::mem::take(&mut self.ticks);
        self.others.clear();
        for pid in task::processes() {
            let Some(process) = Process::now(pid) else { continue };
            self.ticks.insert(pid, (process.start, process.ticks));
            let Some((start, ticks)) = before.get(&pid).filter(|_| since.is_some()) else { continue };
            let used = process.ticks.saturating_sub(*ticks) as f64 / second;
            if *start == process.start && used >= ACTIVE_CPUS {
                let place = Place::of(pid, process.weight, hierarchy);
                let id = (pid, process.start);
                self.others.push(Other { id, place, used, threads: process.threads });
            }
        }
    }
}
