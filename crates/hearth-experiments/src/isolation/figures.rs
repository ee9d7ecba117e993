//! What figures 3 to 6 of the cache-fair paper show (Fedorova, Seltzer and Smith, PACT 2007, sections 3.2 and 5.1),
//! of the runs of a group. All are means over the seeds.

use super::value::{delay, fair_miss_rate, ipc, latency_ns, miss_rate};
use super::{Group, Schedules, Speed};
use crate::experiment::Experiment;
use crate::job::Run;
use crate::setup::Setup;
use hearth_machine::Machine;
use hearth_policy::isolation::Fit;
use hearth_policy::planners;
use hearth_sim::RunResult;

/// The figures of a group; nothing in them of which runs are missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The group's name.
    pub group: String,
    /// The baseline, and the same with cache-fair shares.
    pub policies: [String; 2],
    /// Figure 3, program by program.
    pub miss_rates: Vec<MissRates>,
    /// Figures 4 to 6, the principal with most instructions for each cycle first.
    pub principals: Vec<Principal>,
}

/// A program's fair miss rate, in misses for a thousand cycles.
#[derive(Clone, Debug, PartialEq)]
pub struct MissRates {
    /// The program.
    pub program: String,
    /// As estimated of runs beside others.
    pub estimated: f64,
    /// With the cache parted equally.
    pub actual: f64,
}

/// A principal under both policies.
#[derive(Clone, Debug, PartialEq)]
pub struct Principal {
    /// The program.
    pub name: String,
    /// Instructions for each cycle of its CPU time, in the fast schedule under the baseline.
    pub ipc: f64,
    /// Figure 4: how much longer it takes in the slow schedule than in the fast one, in percent.
    pub variability: [f64; 2],
    /// Figure 5: how long it takes in the fast schedule and in the slow one, in parts of the fast one under the
    /// baseline.
    pub times: [[f64; 2]; 2],
    /// Figure 6: instructions for each cycle of all programs in the slow schedule, in parts of those under the
    /// baseline.
    pub throughput: f64,
}

/// Those of all groups of which there is something to show. `run` finds the run of a set-up with a seed.
pub(crate) fn figures<'a>(
    experiment: &Experiment,
    seeds: &[u64],
    run: impl Fn(&Setup, u64) -> Option<&'a Run>,
) -> Vec<Figures> {
    let result = |setup: &Setup, seed| run(setup, seed).map(|run| &run.result);
    let baseline = experiment.baseline.clone();
    let cache_fair = format!("{baseline}+{}", planners::CACHE_FAIR);
    let of_group = |group: &Group| {
        let policies = [baseline.clone(), cache_fair.clone()];
        let schedules = group.schedules.iter();
        let mut principals: Vec<Principal> =
            schedules.filter_map(|one| principal(group, one, &policies, seeds, &result)).collect();
        principals.sort_by(|one, other| other.ipc.total_cmp(&one.ipc));
        let miss_rates = miss_rates(group, seeds, &result);
        Figures { group: group.name.clone(), policies, miss_rates, principals }
    };
    let is_there = |figures: &Figures| !figures.miss_rates.is_empty() || !figures.principals.is_empty();
    experiment.groups.iter().map(of_group).filter(is_there).collect()
}

fn miss_rates<'a>(
    group: &Group,
    seeds: &[u64],
    result: &impl Fn(&Setup, u64) -> Option<&'a RunResult>,
) -> Vec<MissRates> {
    let Ok(machine) = Machine::load(&group.machine) else { return Vec::new() };
    let [shared, parted] = [&group.machine, &group.parted].map(|machine| Setup::sampled(group, machine));
    let rates = |program: &str| {
        let [estimated, actual] = means(seeds, |seed| {
            let (shared, parted) = (result(&shared, seed)?, result(&parted, seed)?);
            let estimated = fair_miss_rate(shared, program, &machine, Fit::LeastSquares)?;
            Some([estimated, miss_rate(parted, program, &machine)?])
        })?;
        Some(MissRates { program: program.to_owned(), estimated: 1e3 * estimated, actual: 1e3 * actual })
    };
    group.programs().filter_map(rates).collect()
}

fn principal<'a>(
    group: &Group,
    schedules: &Schedules,
    policies: &[String; 2],
    seeds: &[u64],
    result: &impl Fn(&Setup, u64) -> Option<&'a RunResult>,
) -> Option<Principal> {
    let of_seed = |seed| {
        let run = |policy: &str, speed| {
            result(&Setup::beside(group, schedules, speed, policy, &group.machine), seed)
        };
        let both = |policy: &str| Some([run(policy, Speed::Fast)?, run(policy, Speed::Slow)?]);
        let [[fast, slow], [fair_fast, fair_slow]] = [both(&policies[0])?, both(&policies[1])?];
        let whole = latency_ns(fast)?;
        let time = |run| Some(latency_ns(run)? / whole);
        Some([
            own_ipc(fast)?,
            delay(&[slow, fast])?,
            delay(&[fair_slow, fair_fast])?,
            time(fast)?,
            time(slow)?,
            time(fair_fast)?,
            time(fair_slow)?,
            ipc(fair_slow) / ipc(slow),
        ])
    };
    let [own, variability, fair_variability, fast, slow, fair_fast, fair_slow, throughput] =
        means(seeds, of_seed)?;
    Some(Principal {
        name: schedules.principal.clone(),
        ipc: own,
        variability: [variability, fair_variability],
        times: [[fast, slow], [fair_fast, fair_slow]],
        throughput,
    })
}

/// Of the principal alone, to have principals in order.
fn own_ipc(run: &RunResult) -> Option<f64> {
    let tally = &run.applications.first()?.tally;
    (tally.cpu_ns > 0).then(|| tally.counters.instructions() as f64 / tally.cpu_ns as f64)
}

/// Means over the seeds; nothing if one has no value.
fn means<const N: usize>(seeds: &[u64], of_seed: impl Fn(u64) -> Option<[f64; N]>) -> Option<[f64; N]> {
    let mut sums = [0.0; N];
    for &seed in seeds {
        sums.iter_mut().zip(of_seed(seed)?).for_each(|(sum, value)| *sum += value);
    }
    let sums = sums.map(|sum| sum / seeds.len() as f64);
    sums.iter().all(|mean| mean.is_finite()).then_some(sums)
}
