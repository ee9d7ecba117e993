//! What a daemon holds: the scheduler, services beside it, or both.

use crate::cpusets::{CpusetRoad, Cpusets};
use crate::isolation::{self, Gate, Isolation, Weighing};
use crate::only::Only;
use crate::planning::{Beside, Planning, Reach, Stuck};
use crate::programs::Programs;
use crate::words::Words;
use crate::{Error, Options, Scheduler, memory};
use hearth_host::journal::Journal;
use hearth_host::run_folder;
use hearth_host::service::{Running, Service, Setting};
use hearth_host::times::Times;
use hearth_machine::host;
use hearth_policy::{Controller, Planner, Policy, planners};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What is to be in force.
#[derive(Debug, Default)]
pub struct Work {
    /// The scheduler's policy; nothing if the kernel's own scheduler is to stay.
    pub policy: Option<Policy>,
    /// What is to work beside the scheduler, or without one.
    pub services: Vec<Box<dyn Service>>,
    /// The folder of the cgroup whose tasks alone are to be Hearth's.
    pub only: Option<PathBuf>,
    /// The scheduler's planners, of [`planners::PLANNERS`], in the order in which they make a plan; none if it is
    /// to be left without plans.
    pub planners: Vec<String>,
    /// How long a row of gangs is; [`planners::ROW_NS`] if nothing is said.
    pub gang_row: Option<Duration>,
    /// Whose speed is not to depend on its neighbours.
    pub isolation: Option<Arc<Isolation>>,
    /// Whether programs may ask for sets where there is no scheduler.
    pub cpusets: bool,
    /// See [`Options::watchdog`].
    pub watchdog: Option<Duration>,
    /// For tests: see [`Options::stalls`].
    pub stalls: bool,
    /// For tests: after some steps the planner never returns.
    pub planner_stalls: bool,
}

/// What a daemon holds: a scheduler or a service at least.
pub(super) struct Parts {
    pub(super) scheduler: Option<Scheduler>,
    /// Where threads say where they declare what they work on.
    words: Option<Words>,
    pub(super) planning: Option<Planning>,
    pub(super) programs: Programs,
    times: Times,
    isolated: isolation::Told,
    weights: Gate,
    pub(super) only: Option<Only>,
    /// By name.
    pub(super) services: BTreeMap<&'static str, Box<dyn Running>>,
    pub(super) since: Instant,
    /// When it ends by itself.
    pub(super) until: Option<Instant>,
    /// How often the scheduler was loaded again after a wait that the kernel counted and that did not happen.
    pub(super) false_waits: u64,
}

impl Parts {
    /// Has all of it in force; what is changed on the host goes to the journal, and stays changed after
    /// an error.
    pub(super) fn start(work: &Work, journal: &Arc<Mutex<Journal>>) -> Result<Self, Error> {
        let mut parts = Self {
            scheduler: None,
            words: None,
            planning: None,
            programs: Programs::default(),
            times: Times::default(),
            isolated: isolation::Told::default(),
            weights: Gate::default(),
            only: None,
            services: BTreeMap::new(),
            since: Instant::now(),
            until: None,
            false_waits: 0,
        };
        let mut planners = planners_of(work)?;
        let isolation = work.isolation.as_ref().map(|isolation| {
            let (planner, begin) = isolation.parts(&parts.isolated);
            planners.push(Box::new(planner));
            Box::new(begin) as Box<dyn Fn() -> isolation::Isolating + Send>
        });
        if work.policy.is_some() && !planners.is_empty() {
            let beside = Beside { programs: parts.programs.clone(), times: parts.times.clone(), isolation };
            parts.planning = Some(Planning::begin(Controller::new(planners), beside)?);
        } else if work.cpusets {
            parts.programs = Programs::in_cpusets(Cpusets::new(Arc::clone(journal)));
            planners.insert(0, Box::new(planners::Sets::beside_others()));
            let weighing =
                isolation.map(|begin| Weighing::new(begin(), Arc::clone(journal), parts.weights.clone()));
            let road = CpusetRoad::new(parts.programs.clone(), weighing);
            parts.planning = Some(Planning::on(Controller::new(planners), road)?);
        }
        parts.load(work)?;
        if let (Some(cgroup), Some(_)) = (&work.only, &parts.scheduler) {
            parts.only = Some(Only::begin(cgroup, Arc::clone(journal))?);
        }
        let setting = Setting {
            journal: Arc::clone(journal),
            only: work.only.clone(),
            has_scheduler: parts.scheduler.is_some(),
            times: parts.times.clone(),
        };
        for service in &work.services {
            parts.services.extend(service.start(&setting)?.map(|running| (service.name(), running)));
        }
        Ok(parts)
    }

    /// Loads the scheduler, again if there is one.
    pub(super) fn load(&mut self, work: &Work) -> Result<(), Error> {
        let Some(policy) = &work.policy else { return Ok(()) };
        // The old one goes first: there is room for one.
        self.words = None;
        self.scheduler = None;
        let host = host::read(Path::new("/"))?;
        let options = Options { partial: work.only.is_some(), watchdog: work.watchdog, stalls: work.stalls };
        let scheduler = self.scheduler.insert(Scheduler::start(policy, &host, options)?);
        self.words = scheduler.words()?.map(|programs| Words::listen(&run_folder(), programs)).transpose()?;
        memory::give_back();
        if let Some(planning) = &self.planning {
            planning.reach(Reach::new(scheduler, host, options.partial)?);
        }
        self.since = Instant::now();
        Ok(())
    }
}

impl Parts {
    /// What isolation does, if anything is to be isolated.
    pub(super) fn isolation(&self, work: &Work) -> Option<isolation::IsolationStatus> {
        work.isolation.as_ref().map(|_| isolation::lock(&self.isolated).clone())
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // What was changed is about to be undone, and the thread that plans may be in the middle of a step.
        self.programs.close();
        self.weights.close();
    }
}

fn planners_of(work: &Work) -> Result<Vec<Box<dyn Planner>>, Error> {
    let planner = |name: &String| match (name.as_str(), work.gang_row) {
        (planners::GANGS, Some(row)) => {
            Ok(Box::new(planners::Gangs::of_rows(row.as_nanos() as u64)) as Box<_>)
        }
        (name, _) => planners::named(name).ok_or_else(|| Error::NoPlanner { name: name.to_owned() }),
    };
    let mut all: Vec<Box<dyn Planner>> = work.planners.iter().map(planner).collect::<Result<_, _>>()?;
    if work.planner_stalls {
        all.push(Box::new(Stuck::default()));
    }
    Ok(all)
}
