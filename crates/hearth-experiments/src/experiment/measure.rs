//! What a row of a claim measures.

use crate::isolation::Speed;
use serde::Deserialize;

/// What a row measures, by the name given as `of`. Changes are in percent of the baseline's value, shares in percent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are names of programs, workloads and policies")]
pub enum Measure {
    /// Extra misses in a dispatch interval that starts with flushed caches; the application alone.
    ReloadMisses { application: String },
    /// Dispatch intervals of `from_ms` up to `to_ms`, of those of 1 ms or more; the application alone.
    IntervalShare { application: String, from_ms: u64, to_ms: u64 },
    /// Dispatch intervals that ended so; the application alone.
    EndShare { application: String, end: EndName },
    /// Misses in an effective time slice that starts with flushed caches.
    FlushedSliceMisses { application: String, workload: String },
    /// Mean effective time slice, relative to the baseline's.
    SliceRatio { workload: String, policy: String },
    /// Change of the number of misses.
    MissesChange { workload: String, policy: String },
    /// Change of the number of misses against another policy than the baseline.
    MissesChangeOver { workload: String, policy: String, over: String },
    /// Change of the number of misses, less another policy's, in points.
    MissesChangeMinus { workload: String, policy: String, minus: String },
    /// Change of the number of misses, those of copying pages aside, against another policy.
    OwnMissesChangeOver { workload: String, policy: String, over: String },
    /// Of the misses that another node serves, copies of pages aside, what is left of another policy's; in percent.
    RemoteMissesLeft { workload: String, policy: String, over: String },
    /// Of the misses that the baseline has beyond those of the programs each alone on the machine, what the
    /// policy saves; in percent. `alone`: the programs.
    SharedMissesSaved { workload: String, policy: String, alone: Vec<String> },
    /// Change of misses less the least change of the other workloads: below 0 if it is the largest drop.
    MissesChangeLead { workload: String, policy: String, others: Vec<String> },
    /// Mean execution time of the applications, in seconds.
    ExecutionTime { workload: String, policy: String },
    /// Pages that are touched for the first time, of all programs.
    PagesTouched { workload: String, policy: String },
    /// Misses for each millisecond in which a CPU was busy.
    BusyMissRate { workload: String, policy: String },
    /// Time that CPUs are idle.
    IdleShare { workload: String, policy: String },
    /// Change of the mean execution time.
    TimeChange { workload: String, policy: String },
    /// Change of the mean execution time against another policy than the baseline.
    TimeChangeOver { workload: String, policy: String, over: String },
    /// Change of the mean execution time, less another policy's, in points.
    TimeChangeMinus { workload: String, policy: String, minus: String },
    /// Idle time, less the baseline's, in points.
    IdleRise { workload: String, policy: String },
    /// How far apart the rates are at which the applications gain CPU time, while all run.
    SlopeSpread { workload: String, policy: String },
    /// The same, less another policy's, in points.
    SlopeSpreadMinus { workload: String, policy: String, minus: String },
    /// How often a second an application's tasks are switched: to another task's time on the CPU, to another
    /// CPU, to another memory node. All copies together, over their response times.
    SwitchRate { workload: String, application: String, policy: String, to: SwitchName },
    /// The rate of such switches in percent of the baseline's.
    SwitchesLeft { workload: String, application: String, policy: String, to: SwitchName },
    /// Each application's response time over its time under the baseline: the mean.
    ResponseTime { workload: String, policy: String },
    /// The same: the standard deviation over the applications.
    ResponseSpread { workload: String, policy: String },
    /// The same mean, less another policy's.
    ResponseMinus { workload: String, policy: String, minus: String },
    /// Share of the misses that local memory or a cache of the own node served, less another policy's, in points.
    LocalRise { workload: String, policy: String, over: String },
    /// Change of an application's CPU time against another policy; all copies together.
    CpuTimeOver { workload: String, application: String, policy: String, over: String },
    /// Switches to another node after which the share of local pages comes back to where it was, before the
    /// next one; in percent of those that are further apart than two samples.
    Recovery { workload: String, application: String, policy: String },
    /// Mean effective time slice under affinity (a, a), relative to 40 a ms.
    SliceLaw {
        points: u32,
        decays: bool,
        #[serde(default = "affinity")]
        policy: String,
    },
    /// The same slice less 40 a ms, in ms.
    SliceBeyondLaw {
        points: u32,
        decays: bool,
        #[serde(default = "affinity")]
        policy: String,
    },
    /// Least lack of CPU time of a task that moves under affinity (0, a), relative to 20 a ms.
    MoveLaw { points: u32 },
    /// Of the hottest pages by TLB misses, the share that is among the hottest as many by cache misses.
    HotPages { workload: String, percent: usize },
    /// Rank by TLB misses of the CPU with most cache misses to a hot page, in seconds of their own.
    HolderRank { workload: String },
    /// Cache misses that are local with each page placed by cache misses, less those with each placed
    /// by TLB misses: in points of all cache misses, or relative to the former.
    PlacementLoss { workload: String, relative: bool },
    /// Cache misses of a recorded run, in millions.
    RecordedMisses { workload: String },
    /// Of these, such as go to another memory than the CPU's own when pages are dealt out and do not move, in percent.
    RecordedRemote { workload: String },
    /// Time for misses and moves under a page policy, in seconds of CPU time.
    MemoryTime { workload: String, pages: String },
    /// The same in percent of another page policy's.
    MemoryTimeShare { workload: String, pages: String, of_pages: String },
    /// Time of a whole program in a setting, its serial parts included, in seconds.
    WholeTime { program: String, setting: String },
    /// Change of the CPU time of a parallel section against another setting: its time on all CPUs that the
    /// program has.
    ParallelTime { program: String, setting: String, over: String },
    /// That change less the greatest of other programs', in points: above 0 if it is the worst.
    ParallelTimeLead { program: String, setting: String, over: String, others: Vec<String> },
    /// Change of the number of misses in a parallel section against another setting.
    ParallelMisses { program: String, setting: String, over: String },
    /// Change of the time that each application is in its parallel section: the mean of the applications.
    ParallelSections { workload: String, policy: String },
    /// The same, less another policy's, in points.
    ParallelSectionsMinus { workload: String, policy: String, minus: String },
    /// The last busy time unit of the data-affinity paper's example, in this order of tasks.
    LastBusyUnit { order: String },
    /// Cases of the same paper's model, one CPU and few tasks, in which this order costs no more than any other.
    OptimalCases { order: String },
    /// Steps of batching a task, with a million tasks over with a thousand.
    BatchingSteps,
    /// By what the baseline's misses of second levels are divided: of an application, or of all.
    L2MissesDivided { workload: String, application: Option<String>, policy: String },
    /// The same of third levels.
    L3MissesDivided { workload: String, application: Option<String>, policy: String },
    /// The same of second levels, by the programs' own code.
    OwnL2MissesDivided { workload: String, application: Option<String>, policy: String },
    /// Change of the mean execution time, less another workload's, in points.
    TimeChangeBeyond { workload: String, than: String, policy: String },
    /// Execution time that the policy saves over the baseline, in seconds.
    TimeSaved { workload: String, policy: String },
    /// The same, less what it saves of another workload.
    TimeSavedBeyond { workload: String, than: String, policy: String },
    /// By how much a program's estimated fair miss rate is off the one that a parted cache shows, in percent.
    FairMissRateError { group: String, program: String, by: String },
    /// Programs of which it is off by so much at most.
    FairMissRatesWithin { group: String, percent: u32, by: String },
    /// How much longer a principal takes in its slow schedule than in its fast one, in percent.
    Variability { group: String, principal: String, policy: String },
    /// Principals of which that is more than so much, on a machine.
    VariabilitiesAbove { group: String, percent: u32, policy: String, machine: String },
    /// Principals of which it is less.
    VariabilitiesBelow { group: String, percent: u32, policy: String, machine: String },
    /// The greatest of a group.
    GreatestVariability { group: String, policy: String, machine: String },
    /// Change of the instructions for each cycle of all programs of a principal's slow schedule.
    ThroughputChange { group: String, principal: String, policy: String },
    /// Slow schedules in which that rises, less those in which it falls.
    ThroughputsRising { group: String, policy: String },
    /// How much less CPU time the best-effort program of a schedule has, in percent.
    BestEffortLoss { group: String, principal: String, schedule: Speed, policy: String },
    /// The mean of that over all schedules.
    BestEffortLossMean { group: String, policy: String },
    /// The greatest, of losses and gains.
    BestEffortLossGreatest { group: String, policy: String },
    /// How much longer principals take than under the baseline, in percent: the mean of all schedules.
    MeanDelay { group: String, policy: String },
    /// The greatest of that.
    GreatestDelay { group: String, policy: String },
}

impl Measure {
    /// The group of programs that it is about, if it is about their isolation.
    pub(crate) fn group(&self) -> Option<&str> {
        match self {
            Measure::FairMissRateError { group, .. }
            | Measure::FairMissRatesWithin { group, .. }
            | Measure::Variability { group, .. }
            | Measure::VariabilitiesAbove { group, .. }
            | Measure::VariabilitiesBelow { group, .. }
            | Measure::GreatestVariability { group, .. }
            | Measure::ThroughputChange { group, .. }
            | Measure::ThroughputsRising { group, .. }
            | Measure::BestEffortLoss { group, .. }
            | Measure::BestEffortLossMean { group, .. }
            | Measure::BestEffortLossGreatest { group, .. }
            | Measure::MeanDelay { group, .. }
            | Measure::GreatestDelay { group, .. } => Some(group),
            _ => None,
        }
    }

    /// The names in it that a mutant can put others in the place of, each with what it names.
    pub(super) fn names_mut(&mut self) -> Vec<(Named, &mut String)> {
        let (named, names) = match self {
            Measure::ParallelTime { setting, over, .. }
            | Measure::ParallelTimeLead { setting, over, .. }
            | Measure::ParallelMisses { setting, over, .. } => (Named::Setting, vec![setting, over]),
            Measure::ParallelSections { policy, .. }
            | Measure::SliceRatio { policy, .. }
            | Measure::MissesChange { policy, .. }
            | Measure::MissesChangeLead { policy, .. }
            | Measure::SharedMissesSaved { policy, .. }
            | Measure::ExecutionTime { policy, .. }
            | Measure::PagesTouched { policy, .. }
            | Measure::BusyMissRate { policy, .. }
            | Measure::IdleShare { policy, .. }
            | Measure::IdleRise { policy, .. }
            | Measure::SlopeSpread { policy, .. }
            | Measure::SwitchRate { policy, .. }
            | Measure::SwitchesLeft { policy, .. }
            | Measure::ResponseTime { policy, .. }
            | Measure::ResponseSpread { policy, .. }
            | Measure::Recovery { policy, .. }
            | Measure::SliceLaw { policy, .. }
            | Measure::SliceBeyondLaw { policy, .. }
            | Measure::TimeChange { policy, .. }
            | Measure::TimeChangeBeyond { policy, .. }
            | Measure::TimeSaved { policy, .. }
            | Measure::TimeSavedBeyond { policy, .. }
            | Measure::L2MissesDivided { policy, .. }
            | Measure::L3MissesDivided { policy, .. }
            | Measure::OwnL2MissesDivided { policy, .. }
            | Measure::Variability { policy, .. }
            | Measure::ThroughputChange { policy, .. }
            | Measure::ThroughputsRising { policy, .. }
            | Measure::BestEffortLoss { policy, .. }
            | Measure::BestEffortLossMean { policy, .. }
            | Measure::BestEffortLossGreatest { policy, .. }
            | Measure::MeanDelay { policy, .. }
            | Measure::GreatestDelay { policy, .. } => (Named::Policy, vec![policy]),
            Measure::VariabilitiesAbove { policy, machine, .. }
            | Measure::VariabilitiesBelow { policy, machine, .. }
            | Measure::GreatestVariability { policy, machine, .. } => {
                return vec![(Named::Policy, policy), (Named::Machine, machine)];
            }
            Measure::FairMissRateError { by, .. } | Measure::FairMissRatesWithin { by, .. } => {
                (Named::Estimator, vec![by])
            }
            Measure::ParallelSectionsMinus { policy, minus, .. }
            | Measure::MissesChangeMinus { policy, minus, .. }
            | Measure::TimeChangeMinus { policy, minus, .. }
            | Measure::SlopeSpreadMinus { policy, minus, .. }
            | Measure::ResponseMinus { policy, minus, .. } => (Named::Policy, vec![policy, minus]),
            Measure::MissesChangeOver { policy, over, .. }
            | Measure::OwnMissesChangeOver { policy, over, .. }
            | Measure::RemoteMissesLeft { policy, over, .. }
            | Measure::TimeChangeOver { policy, over, .. }
            | Measure::LocalRise { policy, over, .. }
            | Measure::CpuTimeOver { policy, over, .. } => (Named::Policy, vec![policy, over]),
            Measure::WholeTime { setting, .. } => (Named::Setting, vec![setting]),
            Measure::MemoryTime { pages, .. } => (Named::Pages, vec![pages]),
            Measure::MemoryTimeShare { pages, of_pages, .. } => (Named::Pages, vec![pages, of_pages]),
            Measure::LastBusyUnit { order } | Measure::OptimalCases { order } => (Named::Order, vec![order]),
            _ => return Vec::new(),
        };
        names.into_iter().map(|name| (named, name)).collect()
    }

    /// Those of one kind.
    pub(super) fn names(&self, kind: Named) -> Vec<String> {
        let mut copy = self.clone();
        let of_kind = copy.names_mut().into_iter().filter(|(named, _)| *named == kind);
        of_kind.map(|(_, name)| std::mem::take(name)).collect()
    }
}

/// In the place of a policy: affinity with as many points as the law is about.
pub(crate) const AFFINITY: &str = "affinity";

fn affinity() -> String {
    AFFINITY.to_owned()
}

/// To what a task is switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchName {
    /// The CPU, from another task.
    Context,
    /// Another CPU than its last.
    Cpu,
    /// Another memory node than its last.
    Node,
}

/// Why a dispatch interval ended, as in table III of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndName {
    /// The quantum was used up.
    Quantum,
    /// The task blocked.
    Semaphore,
    /// A lock or barrier was not to be had.
    Synchronization,
    /// A system call.
    SystemCall,
}

/// Of what a measure gives the name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    Setting,
    Policy,
    Pages,
    Order,
    Machine,
    Estimator,
}
