//! The values of measures of isolation, from the runs that they need.

use super::Group;
use super::estimates::estimate_of;
use crate::experiment::Measure;
use crate::job::Run;
use hearth_machine::Machine;
use hearth_policy::isolation::{Bus, Fit};
use hearth_sim::RunResult;

/// By the line through samples, of least squares or robust; as the line has it beside programs that never miss; as the miss rate that the
/// program had beside the others.
const REGRESSION: &str = "regression";
const ROBUST: &str = "robust-regression";
const ALONE: &str = "alone";
const SHARED_RATE: &str = "shared-rate";

/// How a fair miss rate can be estimated.
pub(crate) const ESTIMATORS: [&str; 4] = [REGRESSION, ROBUST, ALONE, SHARED_RATE];

/// The principal's place among the applications, and the best-effort program's.
const PRINCIPAL: usize = 0;
const BEST_EFFORT: usize = 1;

/// The value of such a measure of a group.
pub(crate) fn value(measure: &Measure, runs: &[&Run], group: &Group) -> Option<f64> {
    let machine = &Machine::load(&group.machine).ok()?;
    let results: Vec<&RunResult> = runs.iter().map(|run| &run.result).collect();
    match measure {
        Measure::FairMissRateError { program, by, .. } => {
            fair_miss_rate_error(program, by, results[0], results[1], machine)
        }
        Measure::FairMissRatesWithin { percent, by, .. } => {
            let programs = group.programs();
            let errors = programs
                .map(|program| fair_miss_rate_error(program, by, results[0], results[1], machine))
                .collect::<Option<Vec<f64>>>()?;
            Some(count(&errors, |error| error.abs() <= f64::from(*percent)))
        }
        Measure::Variability { .. } => variability(&results),
        Measure::VariabilitiesAbove { percent, .. } => {
            Some(count(&variabilities(&results)?, |value| value > f64::from(*percent)))
        }
        Measure::VariabilitiesBelow { percent, .. } => {
            Some(count(&variabilities(&results)?, |value| value < f64::from(*percent)))
        }
        Measure::GreatestVariability { .. } => {
            Some(variabilities(&results)?.into_iter().fold(f64::MIN, f64::max))
        }
        Measure::ThroughputChange { .. } => throughput_change(&results),
        Measure::ThroughputsRising { .. } => {
            let changes = of_pairs(&results, throughput_change)?;
            Some(count(&changes, |change| change > 0.0) - count(&changes, |change| change < 0.0))
        }
        Measure::BestEffortLoss { .. } => best_effort_loss(&results),
        Measure::BestEffortLossMean { .. } => {
            let losses = of_pairs(&results, best_effort_loss)?;
            Some(losses.iter().sum::<f64>() / losses.len() as f64)
        }
        Measure::BestEffortLossGreatest { .. } => {
            let losses = of_pairs(&results, best_effort_loss)?;
            Some(losses.iter().map(|loss| loss.abs()).fold(0.0, f64::max))
        }
        Measure::MeanDelay { .. } => {
            let delays = of_pairs(&results, delay)?;
            Some(delays.iter().sum::<f64>() / delays.len() as f64)
        }
        Measure::GreatestDelay { .. } => {
            Some(of_pairs(&results, delay)?.into_iter().fold(f64::MIN, f64::max))
        }
        _ => None,
    }
}

fn count(values: &[f64], is_counted: impl Fn(f64) -> bool) -> f64 {
    values.iter().filter(|&&value| is_counted(value)).count() as f64
}

fn of_pairs(runs: &[&RunResult], of_pair: fn(&[&RunResult]) -> Option<f64>) -> Option<Vec<f64>> {
    runs.chunks(2).map(of_pair).collect()
}

fn variabilities(runs: &[&RunResult]) -> Option<Vec<f64>> {
    of_pairs(runs, variability)
}

/// By how much the estimated fair miss rate is off what a parted cache shows, in percent (section 3.2).
fn fair_miss_rate_error(
    program: &str,
    by: &str,
    shared: &RunResult,
    parted: &RunResult,
    machine: &Machine,
) -> Option<f64> {
    let estimated = match by {
        REGRESSION => fair_miss_rate(shared, program, machine, Fit::LeastSquares)?,
        ROBUST => fair_miss_rate(shared, program, machine, Fit::Robust)?,
        ALONE => estimate_of(shared, program, Bus::of(machine), Fit::LeastSquares)?.b,
        SHARED_RATE => miss_rate(shared, program, machine)?,
        _ => return None,
    };
    Some(100.0 * (estimated / miss_rate(parted, program, machine)? - 1.0))
}

/// As estimated of a run in which it was sampled.
pub(super) fn fair_miss_rate(shared: &RunResult, program: &str, machine: &Machine, fit: Fit) -> Option<f64> {
    Some(estimate_of(shared, program, Bus::of(machine), fit)?.fair_miss_rate)
}

/// Misses for each cycle.
pub(super) fn miss_rate(run: &RunResult, program: &str, machine: &Machine) -> Option<f64> {
    let tally = &run.applications.iter().find(|application| application.name == program)?.tally;
    let cycles = tally.cpu_ns as f64 * 1000.0 / machine.cycle_ps() as f64;
    (cycles > 0.0).then(|| tally.counters.misses() as f64 / cycles)
}

/// Whole rounds of a CPU on which the principal takes turns with others: up to when it last began to run.
struct Rounds {
    ns: u64,
    principal_ns: u64,
    best_effort_ns: u64,
}

impl Rounds {
    /// Nothing if there was none.
    fn of(run: &RunResult) -> Option<Self> {
        let of = |application: usize| {
            run.timeline.iter().filter(move |stretch| run.tasks[stretch.task].application == application)
        };
        let ns = of(PRINCIPAL).next_back()?.start_ns;
        let until = |application| {
            of(application)
                .filter(|stretch| stretch.start_ns < ns)
                .map(|stretch| stretch.end_ns.min(ns) - stretch.start_ns)
                .sum::<u64>()
        };
        let rounds = Self { ns, principal_ns: until(PRINCIPAL), best_effort_ns: until(BEST_EFFORT) };
        (rounds.principal_ns > 0).then_some(rounds)
    }
}

/// The principal's *CPU latency*: how long its work takes, in nanoseconds, with the share of the CPU that it
/// has (section 2). Its last turn is rarely a whole one, and whether another's came before it is chance; so it
/// is its CPU time over its share in whole rounds.
///
/// A program that says which part of it is timed has a latency of seconds, and is taken by the clock.
pub(super) fn latency_ns(run: &RunResult) -> Option<f64> {
    if let Some(timed) = run.applications.get(PRINCIPAL)?.parallel {
        return Some(timed.ns as f64);
    }
    let rounds = Rounds::of(run)?;
    let cpu_ns = run.applications.get(PRINCIPAL)?.tally.cpu_ns;
    Some(cpu_ns as f64 * rounds.ns as f64 / rounds.principal_ns as f64)
}

/// How much longer the principal takes in the slow schedule, the first, in percent (section 5.1.1).
fn variability(slow_and_fast: &[&RunResult]) -> Option<f64> {
    delay(slow_and_fast)
}

/// How much longer the principal takes than in another run, in percent.
pub(super) fn delay(runs: &[&RunResult]) -> Option<f64> {
    Some(100.0 * (latency_ns(runs[0])? / latency_ns(runs[1])? - 1.0))
}

/// Instructions for each cycle of all CPUs.
pub(super) fn ipc(run: &RunResult) -> f64 {
    run.total.counters.instructions() as f64 / run.total.cpu_ns as f64
}

/// Change of the instructions for each cycle of all programs, in percent (section 5.1.3).
fn throughput_change(runs: &[&RunResult]) -> Option<f64> {
    Some(100.0 * (ipc(runs[0]) / ipc(runs[1]) - 1.0))
}

/// How much less CPU time the best-effort program has, in percent (section 5.1.4, table 3).
fn best_effort_loss(runs: &[&RunResult]) -> Option<f64> {
    let share = |run| Rounds::of(run).map(|rounds| rounds.best_effort_ns as f64 / rounds.ns as f64);
    Some(100.0 * (1.0 - share(runs[0])? / share(runs[1])?))
}
