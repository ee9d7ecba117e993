//! What each program would do with a fair part of the cache: estimated of runs beside many others, in an
//! experiment of its own, for beside three of a kind there is nothing to learn (section 5.1).

use crate::job::{Job, JobError, Run, Workload};
use crate::policies::Policies;
use hearth_machine::Machine;
use hearth_policy::isolation::{Bus, Estimate, Fit, estimate};
use hearth_policy::snapshot;
use hearth_sim::Application;
use hearth_sim::memory::Memory;
use hearth_sim::{Options, RunResult};
use hearth_workloads::{Built, WorkloadError, build, endless, seed_of_place};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How long programs are sampled at scale 1, in simulated time: nine programs on two CPUs in turns of 200 ms have
/// 22 turns each, and twice as many runs where turns of both CPUs do not end at once. Ten samples are wanted.
const SAMPLING_NS: u64 = 20_000_000_000;

/// The least scale at which programs are sampled.
const LEAST_SCALE: f64 = 0.5;

/// An experiment in which programs are sampled; with a seed it is a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampledIn {
    /// The programs, joined by `+`.
    pub programs: String,
    /// The policy under which they run together.
    pub policy: String,
}

/// Runs in which programs were sampled: by workload and policy, machine, seed and scale's bits.
type Made = BTreeMap<(String, String, u64, u64), Arc<Mutex<Option<Run>>>>;

static MADE: Mutex<Made> = Mutex::new(BTreeMap::new());

impl SampledIn {
    /// Its run.
    ///
    /// # Errors
    /// [`hearth_policy::PolicyError`] if there is no such policy.
    pub(crate) fn job(
        &self,
        machine: &Arc<Machine>,
        scale: f64,
        seed: u64,
    ) -> Result<Job, hearth_policy::PolicyError> {
        Ok(Job {
            machine: Arc::clone(machine),
            workload: Workload::Sampled(self.programs.clone()),
            policies: Policies::load(&self.policy)?,
            scale: scale.max(LEAST_SCALE),
            seed,
            options: Options { record_runs: true, ..Options::default() },
            sampled: None,
        })
    }
}

/// Programs that are sampled, joined by `+`, none of which comes to an end, and a clock that does.
///
/// # Errors
/// [`WorkloadError`]
pub(crate) fn sampled(
    programs: &str,
    memory: &Memory,
    scale: f64,
    seed: u64,
) -> Result<Vec<Built>, WorkloadError> {
    let place = |(index, name): (usize, &str)| {
        let mut built = build(&endless(name)?, memory, scale, seed_of_place(seed, index))?;
        built.applications.iter_mut().for_each(|application| application.name = name.to_owned());
        Ok(built)
    };
    let mut clock = Application::new("clock");
    clock.task("clock", move |cpu| cpu.sleep_ns((SAMPLING_NS as f64 * scale) as u64));
    let built = programs.split('+').map(str::trim).enumerate().map(place);
    built.chain([Ok(Built::new(clock, || Ok(())))]).collect()
}

/// What a run of [`SampledIn::job`] tells of a program, with a line that is found so.
pub(crate) fn estimate_of(result: &RunResult, program: &str, bus: Bus, fit: Fit) -> Option<Estimate> {
    let index = result.applications.iter().position(|application| application.name == program)?;
    let own = result.runs.iter().filter(|run| run.group == index as u64 + 1);
    let own: Vec<snapshot::Run> = own.copied().collect();
    Some(estimate(&own, bus, fit))
}

/// Does a run of [`SampledIn::job`] once for all who ask for it in this process.
///
/// # Errors
/// [`JobError`] of the run.
pub(crate) fn once(job: &Job, run: impl FnOnce() -> Result<Run, JobError>) -> Result<Run, JobError> {
    let what = format!("{} under {}", job.workload.name(), job.policies.name());
    let key = (what, job.machine.name.clone(), job.seed, job.scale.to_bits());
    let cell = Arc::clone(lock(&MADE).entry(key).or_default());
    // Who asks for the same meanwhile waits.
    let mut made = lock(&cell);
    if let Some(run) = &*made {
        return Ok(run.clone());
    }
    Ok(made.insert(run()?).clone())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
