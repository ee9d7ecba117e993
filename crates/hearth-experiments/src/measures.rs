//! What each measure makes of its runs.

use crate::data;
use crate::experiment::{EndName, Measure, SwitchName};
use crate::job::Run;
use crate::numa;
use crate::parallel;
use crate::trace_study;
use hearth_policy::POINT_NS;
use hearth_sim::RunResult;
use hearth_sim::measure::Tally;
use hearth_sim::program::End;

impl From<EndName> for End {
    fn from(name: EndName) -> End {
        match name {
            EndName::Quantum => End::Quantum,
            EndName::Semaphore => End::Block,
            EndName::Synchronization => End::Synchronization,
            EndName::SystemCall => End::SystemCall,
        }
    }
}

impl SwitchName {
    fn text(self) -> &'static str {
        match self {
            SwitchName::Context => "context",
            SwitchName::Cpu => "CPU",
            SwitchName::Node => "cluster",
        }
    }
}

impl EndName {
    fn text(self) -> &'static str {
        match self {
            EndName::Quantum => "quantum",
            EndName::Semaphore => "semaphore",
            EndName::Synchronization => "synchronization",
            EndName::SystemCall => "system call",
        }
    }
}

/// Change from `before` to `after` in percent of `before`.
fn change(after: f64, before: f64) -> f64 {
    100.0 * (after / before - 1.0)
}

fn misses(run: &RunResult) -> f64 {
    run.total.counters.misses() as f64
}

fn busy_ms(run: &RunResult) -> f64 {
    run.elapsed_ns as f64 / 1e6 * run.cpus as f64 * (1.0 - run.idle_share)
}

/// Misses of a workload's programs each alone on the machine, as often as the workload has them.
fn misses_alone(run: &RunResult, programs: &[String], alone: &[&RunResult]) -> f64 {
    let copies = |program: &String| numa::copies(&run.applications, program).count() as f64;
    programs.iter().zip(alone).map(|(program, alone)| copies(program) * misses(alone)).sum()
}

fn time(run: &RunResult) -> f64 {
    run.mean_execution_ns as f64
}

/// The tallies of an application's copies are alike: the first will do.
fn tally<'a>(run: &'a RunResult, application: &'a str) -> Option<&'a Tally> {
    numa::copies(&run.applications, application).next().map(|(_, result)| &result.tally)
}

/// How far apart the applications' rates of CPU time are while all of them run, in percent of their
/// mean. From the second sample on, so that the start does not count.
fn slope_spread(run: &RunResult) -> Option<f64> {
    let ends = run.awaited().map(|(_, application)| application.start_ns + application.execution_ns);
    let first_end_ns = ends.min()?;
    let mut samples = run.samples.iter().filter(|sample| sample.at_ns < first_end_ns).skip(1);
    let first = samples.next()?;
    let last = samples.last()?;
    let rate = |(at, _)| Some((last.cpu_ns.get(at)? - first.cpu_ns.get(at)?) as f64);
    let rates: Vec<f64> = run.awaited().filter_map(rate).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let (least, most) = rates.iter().fold((f64::MAX, 0.0f64), |(a, b), &rate| (a.min(rate), b.max(rate)));
    Some(100.0 * (most - least) / mean)
}

/// The effective slice under affinity with so many points: 40 a ms.
fn law_ms(points: u32) -> f64 {
    2.0 * f64::from(points) * POINT_NS as f64 / 1e6
}

impl Measure {
    /// The value for one seed, from the runs of [`setups`](Self::setups); nothing if a run has no
    /// such figure (it was too short).
    pub(crate) fn value(&self, recorded: &[&Run]) -> Option<f64> {
        let runs: Vec<&RunResult> = recorded.iter().map(|run| &run.result).collect();
        let value = match self {
            Measure::ReloadMisses { application } => {
                let misses = |run| tally(run, application).map(|tally| tally.intervals.mean_misses());
                misses(runs[0])? - misses(runs[1])?
            }
            Measure::IntervalShare { application, from_ms, to_ms } => {
                let lengths = &tally(runs[0], application)?.interval_lengths;
                100.0 * lengths.share(from_ms * 1_000_000, to_ms * 1_000_000)
            }
            Measure::EndShare { application, end } => {
                100.0 * tally(runs[0], application)?.end_share(End::from(*end))
            }
            Measure::FlushedSliceMisses { application, .. } => {
                tally(runs[0], application)?.slices.mean_misses()
            }
            Measure::SliceRatio { .. } => runs[0].total.slices.mean_ms() / runs[1].total.slices.mean_ms(),
            Measure::MissesChange { .. } | Measure::MissesChangeOver { .. } => {
                change(misses(runs[0]), misses(runs[1]))
            }
            Measure::TimeChange { .. } | Measure::TimeChangeOver { .. } => {
                change(time(runs[0]), time(runs[1]))
            }
            Measure::MissesChangeMinus { .. } => {
                change(misses(runs[0]), misses(runs[2])) - change(misses(runs[1]), misses(runs[2]))
            }
            Measure::OwnMissesChangeOver { .. } => {
                let own = |run: &RunResult| run.total.counters.own_misses() as f64;
                change(own(runs[0]), own(runs[1]))
            }
            Measure::RemoteMissesLeft { .. } => {
                let remote = |run: &RunResult| run.total.counters.own_remote_misses() as f64;
                100.0 * remote(runs[0]) / remote(runs[1])
            }
            Measure::SharedMissesSaved { alone, .. } => {
                let shared = misses(runs[1]) - misses_alone(runs[1], alone, &runs[2..]);
                100.0 * (misses(runs[1]) - misses(runs[0])) / shared
            }
            Measure::ExecutionTime { .. } | Measure::WholeTime { .. } => time(runs[0]) / 1e9,
            Measure::PagesTouched { .. } => runs[0].total.counters.page_faults as f64,
            Measure::BusyMissRate { .. } => misses(runs[0]) / busy_ms(runs[0]),
            Measure::IdleShare { .. } => 100.0 * runs[0].idle_share,
            Measure::TimeChangeMinus { .. } => {
                change(time(runs[0]), time(runs[2])) - change(time(runs[1]), time(runs[2]))
            }
            Measure::MissesChangeLead { .. } => {
                let mut changes = runs.chunks(2).map(|pair| change(misses(pair[0]), misses(pair[1])));
                let own = changes.next()?;
                own - changes.fold(f64::MAX, f64::min)
            }
            Measure::SwitchRate { application, to, .. } => numa::switch_rate(runs[0], application, *to)?,
            Measure::SwitchesLeft { application, to, .. } => {
                let rate = |run| numa::switch_rate(run, application, *to);
                100.0 * rate(runs[0])? / rate(runs[1])?
            }
            Measure::ResponseTime { .. } => numa::response(runs[0], runs[1]).mean,
            Measure::ResponseSpread { .. } => numa::response(runs[0], runs[1]).deviation,
            Measure::ResponseMinus { .. } => {
                numa::response(runs[0], runs[2]).mean - numa::response(runs[1], runs[2]).mean
            }
            Measure::LocalRise { .. } => numa::local_percent(runs[0]) - numa::local_percent(runs[1]),
            Measure::CpuTimeOver { application, .. } => {
                change(numa::cpu_ns(runs[0], application)?, numa::cpu_ns(runs[1], application)?)
            }
            Measure::Recovery { application, .. } => {
                numa::recovered_percent(&runs[0].applications, &runs[0].samples, application)?
            }
            Measure::IdleRise { .. } => 100.0 * (runs[0].idle_share - runs[1].idle_share),
            Measure::SlopeSpread { .. } => slope_spread(runs[0])?,
            Measure::SlopeSpreadMinus { .. } => slope_spread(runs[0])? - slope_spread(runs[1])?,
            Measure::SliceLaw { points, .. } => runs[0].total.slices.mean_ms() / law_ms(*points),
            Measure::SliceBeyondLaw { points, .. } => runs[0].total.slices.mean_ms() - law_ms(*points),
            Measure::HotPages { .. }
            | Measure::HolderRank { .. }
            | Measure::RecordedMisses { .. }
            | Measure::RecordedRemote { .. }
            | Measure::PlacementLoss { .. }
            | Measure::MemoryTime { .. }
            | Measure::MemoryTimeShare { .. } => trace_study::measures::value(self, recorded)?,
            Measure::ParallelTime { .. }
            | Measure::ParallelTimeLead { .. }
            | Measure::ParallelMisses { .. }
            | Measure::ParallelSections { .. }
            | Measure::ParallelSectionsMinus { .. } => parallel::value(self, recorded)?,
            Measure::LastBusyUnit { .. }
            | Measure::OptimalCases { .. }
            | Measure::BatchingSteps
            | Measure::L2MissesDivided { .. }
            | Measure::L3MissesDivided { .. }
            | Measure::OwnL2MissesDivided { .. }
            | Measure::TimeChangeBeyond { .. }
            | Measure::TimeSaved { .. }
            | Measure::TimeSavedBeyond { .. } => data::value(self, recorded)?,
            Measure::MoveLaw { points } => {
                runs[0].total.displacements.least_ns()? as f64 / (f64::from(*points) * POINT_NS as f64)
            }
            // Those of a group's isolation, which know the group.
            _ => return None,
        };
        value.is_finite().then_some(value)
    }

    /// What a row is called: whom it is about.
    pub fn name(&self) -> String {
        match self {
            Measure::ReloadMisses { application } | Measure::FlushedSliceMisses { application, .. } => {
                application.clone()
            }
            Measure::IntervalShare { application, from_ms, to_ms } => {
                format!("{application}, {from_ms}-{to_ms} ms")
            }
            Measure::EndShare { application, end } => {
                format!("{application}, {}", end.text())
            }
            Measure::SliceRatio { workload, .. } => format!("{workload}, slice"),
            Measure::MissesChange { workload, policy } => format!("{workload}, misses, {policy}"),
            Measure::MissesChangeOver { workload, policy, over } => {
                format!("{workload}, misses, {policy} over {over}")
            }
            Measure::MissesChangeMinus { workload, policy, minus } => {
                format!("{workload}, misses, {policy} - {minus}")
            }
            Measure::OwnMissesChangeOver { workload, policy, over } => {
                format!("{workload}, misses without copies of pages, {policy} over {over}")
            }
            Measure::RemoteMissesLeft { workload, policy, over } => {
                format!("{workload}, remote misses, {policy}, % of {over}'s")
            }
            Measure::SharedMissesSaved { workload, policy, .. } => {
                format!("{workload}, of what sharing adds to misses, saved, {policy}, %")
            }
            Measure::ExecutionTime { workload, .. } => format!("{workload}, time, s"),
            Measure::WholeTime { program, setting } => format!("{program}, time in all, {setting}, s"),
            Measure::PagesTouched { workload, .. } => format!("{workload}, pages"),
            Measure::BusyMissRate { workload, .. } => format!("{workload}, misses a busy ms"),
            Measure::IdleShare { workload, .. } => format!("{workload}, idle, %"),
            Measure::MissesChangeLead { workload, .. } => format!("{workload}, misses less the best other"),
            Measure::TimeChange { workload, policy } => format!("{workload}, time, {policy}"),
            Measure::TimeChangeOver { workload, policy, over } => {
                format!("{workload}, time, {policy} over {over}")
            }
            Measure::TimeChangeMinus { workload, policy, minus } => {
                format!("{workload}, time, {policy} - {minus}")
            }
            Measure::SwitchRate { application, policy, to, .. } => {
                format!("{application}, {} switches a second, {policy}", to.text())
            }
            Measure::SwitchesLeft { application, policy, to, .. } => {
                format!("{application}, {} switches, {policy}, % of the baseline's", to.text())
            }
            Measure::ResponseTime { workload, policy } => format!("{workload}, {policy}"),
            Measure::ResponseSpread { workload, policy } => format!("{workload}, {policy}, deviation"),
            Measure::ResponseMinus { workload, policy, minus } => format!("{workload}, {policy} - {minus}"),
            Measure::LocalRise { workload, policy, over } => {
                format!("{workload}, local share, {policy} - {over}")
            }
            Measure::CpuTimeOver { application, policy, over, .. } => {
                format!("{application}, CPU time, {policy} over {over}")
            }
            Measure::Recovery { application, policy, .. } => format!("{application}, {policy}"),
            Measure::IdleRise { workload, .. } => format!("{workload}, idle"),
            Measure::SlopeSpread { workload, .. } => workload.clone(),
            Measure::SlopeSpreadMinus { workload, minus, .. } => format!("{workload}, less {minus}'s"),
            Measure::SliceLaw { points, decays: true, .. } => format!("slice, a_t = {points}"),
            Measure::SliceLaw { points, decays: false, .. } => format!("slice, a_t = {points}, no decay"),
            Measure::SliceBeyondLaw { points, .. } => format!("slice less the law, a_t = {points}, ms"),
            Measure::MoveLaw { points } => format!("move, a_p = {points}"),
            Measure::HotPages { workload, percent } => format!("{workload}, hottest {percent} %"),
            Measure::HolderRank { workload } => workload.clone(),
            Measure::RecordedMisses { workload } => format!("{workload}, misses, M"),
            Measure::RecordedRemote { workload } => format!("{workload}, remote, %"),
            Measure::PlacementLoss { workload, relative: false } => workload.clone(),
            Measure::PlacementLoss { workload, relative: true } => format!("{workload}, of local misses"),
            Measure::MemoryTime { workload, pages } => format!("{workload}, {pages}, s"),
            Measure::MemoryTimeShare { workload, pages, of_pages } => {
                format!("{workload}, {pages}, % of {of_pages}")
            }
            Measure::ParallelTime { program, setting, over } => {
                format!("{program}, CPU time, {setting} over {over}")
            }
            Measure::ParallelTimeLead { program, setting, .. } => {
                format!("{program}, CPU time, {setting}, less the worst other")
            }
            Measure::ParallelMisses { program, setting, over } => {
                format!("{program}, misses, {setting} over {over}")
            }
            Measure::ParallelSections { workload, policy } => {
                format!("{workload}, parallel sections, {policy}")
            }
            Measure::ParallelSectionsMinus { workload, policy, minus } => {
                format!("{workload}, parallel sections, {policy} - {minus}")
            }
            Measure::LastBusyUnit { order } => format!("last busy unit, {order}"),
            Measure::OptimalCases { order } => format!("% of cases that are optimal, {order}"),
            Measure::BatchingSteps => "steps a task, a million tasks over a thousand".to_owned(),
            Measure::L2MissesDivided { workload, application, policy } => {
                format!("{}, L2 misses divided by, {policy}", application.as_ref().unwrap_or(workload))
            }
            Measure::L3MissesDivided { workload, application, policy } => {
                format!("{}, L3 misses divided by, {policy}", application.as_ref().unwrap_or(workload))
            }
            Measure::OwnL2MissesDivided { workload, application, policy } => {
                let whose = application.as_ref().unwrap_or(workload);
                format!("{whose}, L2 misses of its own code divided by, {policy}")
            }
            Measure::TimeChangeBeyond { workload, than, policy } => {
                format!("{workload}, time, {policy}, less that of {than}")
            }
            Measure::TimeSaved { workload, policy } => format!("{workload}, seconds saved, {policy}"),
            Measure::FairMissRateError { program, by, .. } => {
                format!("{program}, fair miss rate by {by}, off by %")
            }
            Measure::FairMissRatesWithin { percent, by, .. } => {
                format!("programs within {percent} %, fair miss rate by {by}")
            }
            Measure::Variability { principal, policy, .. } => format!("{principal}, variability, {policy}"),
            Measure::VariabilitiesAbove { percent, policy, machine, .. } => {
                format!("principals above {percent} %, {policy} on {machine}")
            }
            Measure::VariabilitiesBelow { percent, policy, machine, .. } => {
                format!("principals below {percent} %, {policy} on {machine}")
            }
            Measure::GreatestVariability { policy, machine, .. } => {
                format!("greatest variability, {policy} on {machine}")
            }
            Measure::ThroughputChange { principal, policy, .. } => {
                format!("{principal}, slow, instructions a cycle, {policy}")
            }
            Measure::ThroughputsRising { policy, .. } => {
                format!("slow schedules, instructions a cycle, rising less falling, {policy}")
            }
            Measure::BestEffortLoss { principal, schedule, policy, .. } => {
                format!("{principal}, {}, best-effort slowdown, {policy}", schedule.text())
            }
            Measure::MeanDelay { policy, .. } => format!("mean delay of a principal, {policy}, %"),
            Measure::GreatestDelay { policy, .. } => format!("greatest delay of a principal, {policy}, %"),
            Measure::BestEffortLossMean { policy, .. } => format!("best-effort slowdown, mean, {policy}"),
            Measure::BestEffortLossGreatest { policy, .. } => {
                format!("best-effort slowdown or gain, greatest, {policy}")
            }
            Measure::TimeSavedBeyond { workload, than, policy } => {
                format!("{workload}, seconds saved, {policy}, less those of {than}")
            }
        }
    }
}
