//! What the paper on clusters and memory measures of a parallel program that runs by itself (Chandra, Devine,
//! Verghese, Gupta and Rosenblum, ASPLOS 1994, section 5.3.2): what its parallel section costs in a setting
//! that emulates a way of sharing the machine.

use crate::experiment::Measure;
use crate::job::Run;
use hearth_machine::CpuSet;
use hearth_machine::units::Nanoseconds;
use hearth_sim::measure::{ApplicationResult, Parallel};
use hearth_workloads::cool::Invocation;
use serde::{Deserialize, Serialize};

/// How a task-parallel program is run by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Its name, as the paper labels it: `g1`.
    pub name: String,
    /// What it emulates, in a sentence.
    pub description: String,
    /// Processes that the program starts.
    pub processes: usize,
    /// The CPUs that it has, as the kernel writes them.
    pub cpus: String,
    /// Whether each process is attached to one of them.
    #[serde(default)]
    pub attached: bool,
    /// Whether it distributes its data.
    #[serde(default)]
    pub distributed: bool,
    /// The number of CPUs that it is told it has; nothing if it is not told.
    pub told: Option<usize>,
    /// All caches are emptied so often; never, if left out.
    pub flush: Option<Nanoseconds>,
    /// How many cycles a task waits for its own process before another may take it; 4,000, the time to block and be
    /// woken, if left out.
    pub patience: Option<u64>,
}

impl Setting {
    fn cpus(&self) -> Option<CpuSet> {
        CpuSet::parse(&self.cpus).filter(|cpus| !cpus.is_empty())
    }

    /// How the program is started; nothing if its CPUs are no list of CPUs, or it has no process.
    pub(crate) fn invocation(&self) -> Option<Invocation> {
        let cpus = self.cpus()?;
        let Self { processes, attached, distributed, told, patience, .. } = *self;
        let usual = Invocation::default();
        let patience_cycles = patience.unwrap_or(usual.patience_cycles);
        let invocation =
            Invocation { processes, cpus, attached, distributed, told, patience_cycles, ..usual };
        (processes > 0).then_some(invocation)
    }

    /// CPU time of a parallel section: what it took, on each of the CPUs that the program has, busy or not.
    fn cpu_ns(&self, parallel: Parallel) -> f64 {
        parallel.ns as f64 * self.cpus().unwrap_or_default().len() as f64
    }
}

/// The parallel section of a run of one program.
pub(crate) fn parallel(run: &Run) -> Option<Parallel> {
    run.result.applications.first()?.parallel
}

/// CPU time of the parallel section.
pub(crate) fn cpu_ns(run: &Run) -> Option<f64> {
    Some(run.setting.as_ref()?.cpu_ns(parallel(run)?))
}

/// Misses in the parallel section, by whoever served them.
fn misses(run: &Run) -> Option<f64> {
    Some(parallel(run)?.counters.misses() as f64)
}

fn change(run: &Run, over: &Run, what: fn(&Run) -> Option<f64>) -> Option<f64> {
    Some(100.0 * (what(run)? / what(over)? - 1.0))
}

/// The value of a measure of this section, from the runs that it needs.
pub(crate) fn value(measure: &Measure, runs: &[&Run]) -> Option<f64> {
    match measure {
        Measure::ParallelTime { .. } => change(runs[0], runs[1], cpu_ns),
        Measure::ParallelMisses { .. } => change(runs[0], runs[1], misses),
        Measure::ParallelTimeLead { .. } => {
            let changes: Option<Vec<f64>> =
                runs.chunks(2).map(|pair| change(pair[0], pair[1], cpu_ns)).collect();
            let changes = changes?;
            Some(changes[0] - changes[1..].iter().copied().fold(f64::MIN, f64::max))
        }
        Measure::ParallelSections { .. } => sections_change(runs[0], runs[1]),
        Measure::ParallelSectionsMinus { .. } => {
            Some(sections_change(runs[0], runs[2])? - sections_change(runs[1], runs[2])?)
        }
        _ => None,
    }
}

/// How much longer each application is in its parallel section than in another run, in percent: the mean of
/// the applications (section 5.3.3, figure 13).
pub(crate) fn sections_change(run: &Run, over: &Run) -> Option<f64> {
    let pairs = run.result.applications.iter().zip(&over.result.applications);
    let ratio = |(is, was): (&ApplicationResult, &ApplicationResult)| {
        Some(is.parallel?.ns as f64 / was.parallel?.ns as f64)
    };
    let ratios: Vec<f64> = pairs.map(ratio).collect::<Option<_>>()?;
    (!ratios.is_empty()).then(|| 100.0 * (ratios.iter().sum::<f64>() / ratios.len() as f64 - 1.0))
}
