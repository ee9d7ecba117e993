//! Looks at this machine: what followers use, ten times a second; once a second where they stand; and once
//! a second, while CPUs are used by others, who these are, with which weight, in which cgroup and on which
//! CPUs. Uses are looked at more rarely where `/proc` is large, so that each takes two thousandths of a CPU
//! at most.

use crate::cgroups::{Groups, Hierarchy, Read, USUAL_WEIGHT};
use crate::demand::{Application, Demand, Mask};
use crate::machine::{COST_SHARE, Paced, Process, Ticks, age, mask_of, online, ticks_in_second};
use crate::scan::Scan;
use crate::steady::{Id, Look, Present};
use hearth_host::clock::now_ns;
use hearth_host::times::Times;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Of the machine: with less idle, somebody waits.
const SATURATED: f64 = 0.05;
/// What a process used in less time than this says little: ticks are 10 ms.
const SHORT_S: f64 = 0.02;
/// What was told of all tasks holds for so long.
const FRESH_NS: u64 = 2_000_000_000;
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
    hearings: Paced,
    scan: Scan,
    /// Where followers stand, and what their cgroups have.
    places: HashMap<Id, Place>,
    cgroups: Read,
    placed: Paced,
    counts: Paced,
    uses: Uses,
    is_thorough: bool,
    times: Times,
}

impl Observer {
    /// One that has not looked yet.
    pub fn new() -> Self {
        Self {
            hierarchy: Hierarchy::find(),
            machine: online(),
            scans: Paced::new(Duration::from_secs(1), COST_SHARE),
            hearings: Paced::new(Duration::from_secs(1), COST_SHARE),
            scan: Scan::default(),
            places: HashMap::new(),
            cgroups: Read::new(),
            placed: Paced::new(Duration::from_secs(1), COST_SHARE),
            counts: Paced::new(Duration::ZERO, COST_SHARE),
            uses: Uses::default(),
            is_thorough: false,
            times: Times::default(),
        }
    }

    /// One that has no need to look at all processes where somebody tells what all tasks have used.
    pub fn with_times(times: Times) -> Self {
        Self { times, ..Self::new() }
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

    /// Whether who the others are was told at the last look, not read.
    pub fn is_told(&self) -> bool {
        self.scan.is_told()
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
            match self.times.last().filter(|pass| now_ns().saturating_sub(pass.at_ns) < FRESH_NS) {
                Some(pass) => self.hearings.look(now, || self.scan.hear(pass, self.hierarchy.as_ref())),
                None => self.scans.look(now, || self.scan.look(now, self.hierarchy.as_ref())),
            };
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
pub(crate) struct Place {
    cgroup: PathBuf,
    mask: Mask,
    weight: f64,
}

impl Place {
    pub fn of(pid: i32, weight: f64, hierarchy: Option<&Hierarchy>) -> Self {
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
