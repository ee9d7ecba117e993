//! What is to be run, and what came of it.

use super::Arguments;
use crate::{names, values};
use hearth_command::failure::Failure;
use hearth_experiments::report::{Comparison, PolicyRuns};
use hearth_experiments::{Job, JobError, Policies, Run, Workload};
use hearth_machine::Machine;
use hearth_policy::planners;
use hearth_sim::Options;
use hearth_trace::Trace;
use std::str::FromStr;
use std::sync::Arc;

/// The shortest time between two samples of CPU time, for the shortest programs.
const SHORTEST_SAMPLE_NS: f64 = 5e6;

/// How many copies of a program; or how many for each CPU, in hundredths.
#[derive(Clone, Copy, Debug)]
pub enum Copies {
    Count(usize),
    PerCpu(usize),
}

const MOST_COPIES: usize = 1024;

impl Copies {
    fn on(self, machine: &Machine) -> usize {
        match self {
            Self::Count(count) => count,
            Self::PerCpu(hundredths) => (machine.cpus() * hundredths).div_ceil(100).min(MOST_COPIES),
        }
    }
}

impl FromStr for Copies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let per_cpu = text.strip_suffix('x').and_then(|number| number.parse::<f64>().ok());
        match per_cpu.map(|number| number * 100.0) {
            Some(hundredths @ 1.0..=10_000.0) => Ok(Self::PerCpu(hundredths.round() as usize)),
            None if !text.ends_with('x') => values::count(text, 1..=MOST_COPIES).map(Self::Count),
            _ => Err("give a whole number from 1 to 1024, or 0.01x to 100x the machine's CPUs".to_owned()),
        }
    }
}

/// The runs of a comparison.
pub struct Plan {
    pub jobs: Vec<Job>,
    machine: Arc<Machine>,
    workload: Workload,
    scale: f64,
    seeds: Vec<u64>,
    policies: Vec<Policies>,
}

impl Plan {
    /// Reads and checks everything that the arguments name.
    pub fn new(arguments: &Arguments, machine: &str) -> Result<Self, Failure> {
        let machine = Arc::new(names::machine(machine)?);
        let planner = planners::kind(&arguments.planner).map(|kind| kind.name);
        let policies = names::policies(&arguments.policies, planner)?;
        let workload = workload(arguments, &machine)?;
        let seeds: Vec<u64> = arguments.seeds.all();
        let scale = arguments.scale;
        let charts = arguments.report.is_some() || arguments.perfetto.is_some();
        let default = Options::default();
        let sample_ns = (default.sample_ns as f64 * scale).max(SHORTEST_SAMPLE_NS) as u64;
        // Seeds outside, policies inside: what an interruption leaves can be compared.
        let job = |seed: u64, policies: &Policies| Job {
            machine: Arc::clone(&machine),
            workload: workload.clone(),
            policies: policies.clone(),
            scale,
            seed,
            options: Options { timeline: charts && seed == 1, sample_ns, ..default },
            sampled: None,
        };
        let jobs = seeds.iter().flat_map(|&seed| policies.iter().map(move |policy| (seed, policy)));
        let jobs = jobs.map(|(seed, policy)| job(seed, policy)).collect();
        Ok(Self { jobs, machine, workload, scale, seeds, policies })
    }

    /// The finished runs side by side, and what went wrong with the others.
    pub fn collect(
        &self,
        results: impl Iterator<Item = Option<Result<Run, JobError>>>,
    ) -> (Comparison, Vec<JobError>) {
        let mut runs: Vec<Vec<Run>> = self.policies.iter().map(|_| Vec::new()).collect();
        let mut errors = Vec::new();
        for (index, result) in results.enumerate() {
            match result {
                Some(Ok(run)) => runs[index % self.policies.len()].push(run),
                Some(Err(error)) if !error.is_interruption() => errors.push(error),
                _ => {}
            }
        }
        let partial = runs.iter().any(|runs| runs.len() < self.seeds.len());
        let named = self.policies.iter().zip(runs);
        let policies =
            named.filter_map(|(policy, runs)| PolicyRuns::new(&policy.name(), &policy.description(), runs));
        let comparison = Comparison {
            machine: self.machine.name.clone(),
            machine_description: self.machine.description.clone(),
            workload: self.workload.name(),
            scale: self.scale,
            seeds: self.seeds.clone(),
            partial,
            policies: policies.collect(),
        };
        (comparison, errors)
    }
}

fn workload(arguments: &Arguments, machine: &Machine) -> Result<Workload, Failure> {
    let Some(path) = &arguments.trace else {
        let workload = Workload::parse(&arguments.workload).map_err(Failure::input)?;
        if let Workload::Mix(mix) = &workload {
            names::check_mix(mix, machine)?;
        }
        return Ok(workload);
    };
    Trace::open(path).map_err(Failure::input)?;
    Ok(Workload::Trace { path: path.clone(), copies: arguments.copies.on(machine) })
}
