//! One run of a workload under a policy on a machine, and many of them at a time.

use crate::isolation::{Beside, SampledIn, ScheduleError, estimate_of, once, sampled};
use crate::kept::{Kept, KeptError};
use crate::parallel::Setting;
use crate::policies::Policies;
use crate::trace_study::{Study, StudyError};
use hearth_machine::Machine;
use hearth_policy::PolicyError;
use hearth_policy::isolation::Estimate;
use hearth_sim::{Options, RunResult, SimError, Simulation};
use hearth_trace::{Trace, TraceError};
use hearth_workloads::cool::Sharing;
use hearth_workloads::{Built, WorkloadError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use thiserror::Error;

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Workload {
    /// Programs joined by `+`, for example `matrix+cholesky`.
    Mix(String),
    /// A task-parallel program, run by itself in some way.
    Set {
        /// The program.
        program: String,
        /// How.
        setting: Setting,
    },
    /// Programs joined by `+` that are sampled together, none of which comes to an end.
    Sampled(String),
    /// A principal beside others.
    Beside(Beside),
    /// Copies of a recorded program.
    Trace {
        /// The trace.
        path: PathBuf,
        /// How many tasks replay it.
        copies: usize,
    },
}

impl Workload {
    /// Programs that start together, or one [beside](Beside) others.
    ///
    /// # Errors
    /// [`ScheduleError`] if the text begins to say who runs beside whom, and goes wrong.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        Ok(if Beside::is_meant(text) { Self::Beside(text.parse()?) } else { Self::Mix(text.into()) })
    }

    /// What to call it in reports.
    pub fn name(&self) -> String {
        match self {
            Workload::Mix(mix) | Workload::Sampled(mix) => mix.clone(),
            Workload::Set { program, .. } => program.clone(),
            Workload::Beside(beside) => beside.to_string(),
            Workload::Trace { path, copies } => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                format!("{copies} x {stem}")
            }
        }
    }

    fn build(
        &self,
        simulation: &Simulation,
        scale: f64,
        seed: u64,
        sharing: Sharing,
    ) -> Result<Vec<Built>, JobError> {
        match self {
            Workload::Mix(mix) => {
                Ok(hearth_workloads::build_mix(mix, &simulation.memory(), scale, seed, sharing)?)
            }
            Workload::Set { program, setting } => {
                let invocation = setting.invocation().unwrap_or_default();
                let memory = simulation.memory();
                Ok(vec![hearth_workloads::build_invoked(program, &memory, scale, seed, &invocation)?])
            }
            Workload::Sampled(mix) => Ok(sampled(mix, &simulation.memory(), scale, seed)?),
            Workload::Beside(beside) => Ok(beside.build(&simulation.memory(), scale, seed)?),
            Workload::Trace { path, copies } => {
                Ok(hearth_workloads::replay(&Trace::open(path)?, *copies, &simulation.memory(), scale)?)
            }
        }
    }
}

/// One run to do.
#[derive(Clone, Debug)]
pub struct Job {
    /// The machine.
    pub machine: Arc<Machine>,
    /// The programs.
    pub workload: Workload,
    /// The policies.
    pub policies: Policies,
    /// Length of the programs, above 0 and up to 1.
    pub scale: f64,
    /// Seed of the programs and of the machine's page frames.
    pub seed: u64,
    /// How it is done; `options.seed` is set from `seed`.
    pub options: Options,
    /// Where the planner's estimates of programs come from, if it begins with some.
    pub sampled: Option<SampledIn>,
}

/// A run that is done.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Run {
    /// The workload's name.
    pub workload: String,
    /// The policies' name.
    pub policy: String,
    /// How the program was run by itself, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<Setting>,
    /// The seed.
    pub seed: u64,
    /// What was measured.
    #[serde(flatten)]
    pub result: RunResult,
    /// What page policies would have made of it, if its misses were recorded.
    #[serde(skip)]
    pub study: Option<Study>,
}

/// Why a run came to nothing.
#[derive(Debug, Error)]
pub enum JobError {
    /// The programs cannot be set up.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The trace cannot be replayed.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The simulation ended badly.
    #[error("{workload} under {policy}, seed {seed}: {error}")]
    Simulation {
        /// The workload's name.
        workload: String,
        /// The policy's name.
        policy: String,
        /// The seed.
        seed: u64,
        /// What happened.
        error: SimError,
    },
    /// The policy under which programs are to be sampled cannot be had.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Its misses cannot be studied.
    #[error("{run}: {error}")]
    Study {
        /// Workload, policy and seed.
        run: String,
        /// Why.
        error: Box<StudyError>,
    },
    /// It cannot be kept, or taken from where it was.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// The trace turned out to be damaged while it was replayed.
    #[error("{0}")]
    Damaged(String),
    /// A program computed a wrong result: a defect of Hearth.
    #[error("{name} computed a wrong result: {reason}")]
    Check {
        /// The program.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

impl JobError {
    /// Whether the run was stopped from outside.
    pub fn is_interruption(&self) -> bool {
        matches!(self, JobError::Simulation { error: SimError::Interrupted, .. })
    }
}

/// What a cache-fair planner of a job knows from the start.
fn known(job: &Job, stop: Option<&'static AtomicBool>) -> Result<BTreeMap<u64, Estimate>, JobError> {
    let (Workload::Beside(beside), Some(sampled)) = (&job.workload, &job.sampled) else {
        return Ok(BTreeMap::new());
    };
    let Some((bus, rule)) = job.policies.cache_fair(&job.machine) else { return Ok(BTreeMap::new()) };
    let (group, program) = beside.principal();
    let run = run_one(&sampled.job(&job.machine, job.scale, job.seed)?, stop)?;
    let estimate = estimate_of(&run.result, program, bus, rule.fit);
    Ok(estimate.map(|estimate| (group, estimate)).into_iter().collect())
}

/// Does one run, and checks what the programs computed.
///
/// # Errors
/// [`JobError`].
pub fn run_one(job: &Job, stop: Option<&'static AtomicBool>) -> Result<Run, JobError> {
    match job.workload {
        Workload::Sampled(_) => once(job, || simulate(job, stop)),
        _ => simulate(job, stop),
    }
}

fn simulate(job: &Job, stop: Option<&'static AtomicBool>) -> Result<Run, JobError> {
    let wrap = |error| JobError::Simulation {
        workload: job.workload.name(),
        policy: job.policies.name(),
        seed: job.seed,
        error,
    };
    let options = Options { seed: job.seed, ..job.options };
    let mut simulation = Simulation::new(&job.machine, &job.policies.policy, &options).map_err(wrap)?;
    if let Some(stop) = stop {
        simulation.stop_when(stop);
    }
    if let Some(pages) = &job.policies.pages {
        simulation.migrate_pages(&job.machine, pages).map_err(wrap)?;
    }
    if let Some(controller) = job.policies.controller(&job.machine, known(job, stop)?) {
        simulation.plan_with(controller).map_err(wrap)?;
        if job.policies.act_by_weights() {
            simulation.act_by_weights();
        }
    }
    let mut checks = Vec::new();
    for built in job.workload.build(&simulation, job.scale, job.seed, job.policies.sharing())? {
        let names: Vec<&str> =
            built.applications.iter().map(|application| application.name.as_str()).collect();
        checks.push((names.join(", "), built.check));
        built.applications.into_iter().for_each(|application| simulation.add(application));
    }
    let mut result = simulation.run().map_err(wrap)?;
    for (name, check) in checks {
        check().map_err(|reason| match job.workload {
            Workload::Trace { .. } => JobError::Damaged(reason),
            _ => JobError::Check { name, reason },
        })?;
    }
    let (workload, policy, seed) = (job.workload.name(), job.policies.name(), job.seed);
    // Logs are large: what is to be known of one is worked out before the next run begins.
    let study = result.misses.take().map(|log| Study::of(&log, result.cpus)).transpose();
    let study = study.map_err(|error| JobError::Study { run: job.name(), error: Box::new(error) })?;
    let setting = match &job.workload {
        Workload::Set { setting, .. } => Some(setting.clone()),
        _ => None,
    };
    Ok(Run { workload, policy, setting, seed, result, study })
}

impl Job {
    /// What a reader calls the run.
    pub fn name(&self) -> String {
        format!("{} under {}, seed {}", self.workload.name(), self.policies.name(), self.seed)
    }
}

/// Is told how far a set of runs is.
pub trait Progress: Sync {
    /// A run begins. Several may be under way.
    fn began(&self, run: &Job);
    /// A run is done, or has failed: `done` of `all`.
    fn ended(&self, run: &Job, done: usize, all: usize);
}

/// How many runs are done.
pub struct Runner<'a> {
    /// So many at a time.
    pub threads: usize,
    /// Where those that are done are, and will be.
    pub kept: Option<&'a Kept>,
    /// Is told how far they are.
    pub progress: &'a dyn Progress,
    /// When this becomes true, runs under way end with an interruption and the rest is not begun.
    pub stop: Option<&'static AtomicBool>,
}

impl Runner<'_> {
    /// Does runs. The results are in the order of the jobs, whatever the order in which they end.
    pub fn run_all(&self, jobs: &[Job]) -> Vec<Option<Result<Run, JobError>>> {
        let waiting: Mutex<VecDeque<usize>> = Mutex::new((0..jobs.len()).collect());
        let (sender, receiver) = mpsc::channel();
        let mut results: Vec<_> = jobs.iter().map(|_| None).collect();
        std::thread::scope(|scope| {
            for _ in 0..self.threads.clamp(1, jobs.len().max(1)) {
                let (sender, waiting) = (sender.clone(), &waiting);
                scope.spawn(move || {
                    while !self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                        let Some(index) = next else { return };
                        self.progress.began(&jobs[index]);
                        if sender.send((index, self.run(&jobs[index]))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            for (done, (index, result)) in receiver.into_iter().enumerate() {
                self.progress.ended(&jobs[index], done + 1, jobs.len());
                results[index] = Some(result);
            }
        });
        results
    }

    fn run(&self, job: &Job) -> Result<Run, JobError> {
        let Some(kept) = self.kept else { return run_one(job, self.stop) };
        if let Some(run) = kept.find(job)? {
            return Ok(run);
        }
        let run = run_one(job, self.stop)?;
        kept.keep(job, &run)?;
        Ok(run)
    }
}
