//! Which runs a measure needs.

use crate::claims::JudgeError;
use crate::experiment::{AFFINITY, Experiment, Measure};
use crate::isolation::{Group, SampledIn, Schedules, Speed};
use crate::job::{Job, Workload};
use crate::parallel::Setting;
use crate::policies::Policies;
use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::{Flush, Options};
use std::sync::Arc;

/// A workload under a policy; with a seed it is a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Setup {
    /// Programs joined by `+`.
    pub workload: String,
    /// The policy.
    pub policy: PolicyName,
    /// When caches are emptied.
    pub flush: FlushName,
    /// Whether misses are recorded, for page policies to be tried on.
    pub records: bool,
    /// How the program, a task-parallel one, is run by itself.
    pub setting: Option<Setting>,
    /// The machine, if it is not the experiment's.
    pub machine: Option<String>,
    /// Where the planner's estimates come from, if it begins with some; or the run in which they are made.
    pub sampled: Option<SampledIn>,
    /// Whether it is that run.
    pub samples: bool,
}

/// A policy by name or by its constants.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PolicyName {
    /// A preset, perhaps with a page policy: `both+dash`.
    Named(String),
    /// Affinity with these constants, in points.
    Affinity {
        /// Of the task that just ran.
        a_t: u32,
        /// Of tasks that last ran on the CPU.
        a_p: u32,
        /// Whether usage decays.
        decays: bool,
    },
}

/// [`Flush`], in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FlushName {
    Never,
    EachInterval,
    EachSlice,
}

/// Tasks that only compute, two for each CPU: who runs when follows from the policy alone.
const TWO_EACH: &str = "spin+spin+spin+spin+spin+spin+spin+spin";
/// One task more than CPUs.
const ONE_MORE: &str = "spin+spin+spin+spin+spin";
/// As good as never, for usage that does not decay.
const NEVER_NS: u64 = 1 << 62;

impl Setup {
    /// A workload under a policy, or under a policy and a page policy: `both+dash`.
    pub(crate) fn new(workload: &str, policy: &str) -> Self {
        let policy = PolicyName::Named(policy.into());
        Self {
            workload: workload.into(),
            policy,
            flush: FlushName::Never,
            records: false,
            setting: None,
            machine: None,
            sampled: None,
            samples: false,
        }
    }

    /// A principal's schedule on a machine, whose planner knows what sampling beforehand tells, or nothing.
    pub(crate) fn beside(
        group: &Group,
        schedules: &Schedules,
        speed: Speed,
        policy: &str,
        machine: &str,
    ) -> Self {
        let setup = Self::new(&group.workload(schedules, speed), policy);
        let sampled = (!group.samples_itself).then(|| group.sampled_in());
        Self { machine: Some(machine.into()), sampled, ..setup }
    }

    /// The programs of a group, sampled on a machine.
    pub(crate) fn sampled(group: &Group, machine: &str) -> Self {
        let sampled = group.sampled_in();
        let setup = Self::new(&sampled.programs, &sampled.policy);
        Self { machine: Some(machine.into()), sampled: Some(sampled), samples: true, ..setup }
    }

    fn recorded(workload: &str, policy: &str) -> Self {
        Self { records: true, ..Self::new(workload, policy) }
    }

    fn flushed(workload: &str, policy: &str, flush: FlushName) -> Self {
        Self { flush, ..Self::new(workload, policy) }
    }

    fn affinity(workload: &str, a_t: u32, a_p: u32, decays: bool) -> Self {
        let policy = PolicyName::Affinity { a_t, a_p, decays };
        Self { policy, ..Self::new(workload, "") }
    }

    fn set(program: &str, policy: &str, setting: &Setting) -> Self {
        Self { setting: Some(setting.clone()), ..Self::new(program, policy) }
    }

    /// The run of this set-up with a seed.
    ///
    /// # Errors
    /// [`JudgeError`] if there is no such policy, machine or schedule.
    pub fn job(&self, machine: &Arc<Machine>, scale: f64, seed: u64) -> Result<Job, JudgeError> {
        let machine = match &self.machine {
            Some(name) => Arc::new(Machine::load(name)?),
            None => Arc::clone(machine),
        };
        if let (true, Some(sampled)) = (self.samples, &self.sampled) {
            return Ok(sampled.job(&machine, scale, seed)?);
        }
        let policies = match &self.policy {
            PolicyName::Named(name) => Policies::load(name)?,
            &PolicyName::Affinity { a_t, a_p, decays } => {
                let policy = Policy::affinity(a_t, a_p);
                Policies::from(if decays { policy } else { Policy { decay_ns: NEVER_NS, ..policy } })
            }
        };
        let each = self.setting.as_ref().and_then(|setting| setting.flush);
        let flush = match self.flush {
            FlushName::Never => each.map_or(Flush::Never, |each| Flush::Each(each.0)),
            FlushName::EachInterval => Flush::EachInterval,
            FlushName::EachSlice => Flush::EachSlice,
        };
        let workload = match &self.setting {
            Some(setting) => Workload::Set { program: self.workload.clone(), setting: setting.clone() },
            None => Workload::parse(&self.workload)?,
        };
        let timeline = matches!(workload, Workload::Beside(_));
        let options =
            Options { flush, timeline, causes: false, record_misses: self.records, ..Options::default() };
        let sampled = self.sampled.clone();
        Ok(Job { machine, workload, policies, scale, seed, options, sampled })
    }
}

impl Experiment {
    /// The set-ups of its programs in its settings.
    pub(crate) fn setups<'a>(&'a self) -> impl Iterator<Item = Setup> + 'a {
        let in_each = move |program: &'a String| {
            self.settings.iter().map(move |setting| Setup::set(program, &self.baseline, setting))
        };
        self.programs.iter().flat_map(in_each)
    }
}

impl Measure {
    /// The set-ups that this measure reads, in the order in which it reads them.
    pub(crate) fn setups(&self, experiment: &Experiment) -> Vec<Setup> {
        let base = experiment.baseline.as_str();
        let set = |programs: &[&String], settings: &[&String]| -> Vec<Setup> {
            let settings = settings.iter().filter_map(|name| experiment.setting(name));
            let settings: Vec<&Setting> = settings.collect();
            let of_program = |program: &&String| {
                settings.iter().map(|setting| Setup::set(program, base, setting)).collect::<Vec<_>>()
            };
            programs.iter().flat_map(of_program).collect()
        };
        match self {
            Measure::WholeTime { program, setting } => set(&[program], &[setting]),
            Measure::ParallelTime { program, setting, over }
            | Measure::ParallelMisses { program, setting, over } => set(&[program], &[setting, over]),
            Measure::ParallelTimeLead { program, setting, over, others } => {
                let programs: Vec<&String> = std::iter::once(program).chain(others).collect();
                set(&programs, &[setting, over])
            }
            Measure::ReloadMisses { application } => vec![
                Setup::flushed(application, base, FlushName::EachInterval),
                Setup::new(application, base),
            ],
            Measure::IntervalShare { application, .. } | Measure::EndShare { application, .. } => {
                vec![Setup::new(application, base)]
            }
            Measure::FlushedSliceMisses { workload, .. } => {
                vec![Setup::flushed(workload, base, FlushName::EachSlice)]
            }
            Measure::SliceRatio { workload, policy }
            | Measure::MissesChange { workload, policy }
            | Measure::TimeChange { workload, policy }
            | Measure::TimeSaved { workload, policy }
            | Measure::L2MissesDivided { workload, policy, .. }
            | Measure::L3MissesDivided { workload, policy, .. }
            | Measure::OwnL2MissesDivided { workload, policy, .. }
            | Measure::IdleRise { workload, policy } => {
                vec![Setup::new(workload, policy), Setup::new(workload, base)]
            }
            Measure::MissesChangeOver { workload, policy, over }
            | Measure::OwnMissesChangeOver { workload, policy, over }
            | Measure::RemoteMissesLeft { workload, policy, over }
            | Measure::TimeChangeOver { workload, policy, over } => {
                vec![Setup::new(workload, policy), Setup::new(workload, over)]
            }
            Measure::SharedMissesSaved { workload, policy, alone } => {
                let of_workload = [Setup::new(workload, policy), Setup::new(workload, base)];
                of_workload.into_iter().chain(alone.iter().map(|program| Setup::new(program, base))).collect()
            }
            Measure::ExecutionTime { workload, policy }
            | Measure::PagesTouched { workload, policy }
            | Measure::BusyMissRate { workload, policy }
            | Measure::IdleShare { workload, policy } => vec![Setup::new(workload, policy)],
            Measure::SlopeSpreadMinus { workload, policy, minus } => {
                vec![Setup::new(workload, policy), Setup::new(workload, minus)]
            }
            Measure::MissesChangeMinus { workload, policy, minus }
            | Measure::TimeChangeMinus { workload, policy, minus } => {
                vec![Setup::new(workload, policy), Setup::new(workload, minus), Setup::new(workload, base)]
            }
            Measure::TimeChangeBeyond { workload, than, policy }
            | Measure::TimeSavedBeyond { workload, than, policy } => [workload, than]
                .into_iter()
                .flat_map(|workload| [Setup::new(workload, policy), Setup::new(workload, base)])
                .collect(),
            Measure::LastBusyUnit { .. } | Measure::OptimalCases { .. } | Measure::BatchingSteps => {
                Vec::new()
            }
            Measure::MissesChangeLead { workload, policy, others } => std::iter::once(workload)
                .chain(others)
                .flat_map(|workload| [Setup::new(workload, policy), Setup::new(workload, base)])
                .collect(),
            Measure::SwitchRate { workload, policy, .. } | Measure::Recovery { workload, policy, .. } => {
                vec![Setup::new(workload, policy)]
            }
            Measure::SwitchesLeft { workload, policy, .. }
            | Measure::ResponseTime { workload, policy }
            | Measure::ResponseSpread { workload, policy }
            | Measure::ParallelSections { workload, policy } => {
                vec![Setup::new(workload, policy), Setup::new(workload, base)]
            }
            Measure::ResponseMinus { workload, policy, minus }
            | Measure::ParallelSectionsMinus { workload, policy, minus } => {
                vec![Setup::new(workload, policy), Setup::new(workload, minus), Setup::new(workload, base)]
            }
            Measure::LocalRise { workload, policy, over }
            | Measure::CpuTimeOver { workload, policy, over, .. } => {
                vec![Setup::new(workload, policy), Setup::new(workload, over)]
            }
            Measure::SlopeSpread { workload, policy } => vec![Setup::new(workload, policy)],
            Measure::SliceLaw { points, decays, policy }
            | Measure::SliceBeyondLaw { points, decays, policy } => match policy.as_str() {
                AFFINITY => vec![Setup::affinity(TWO_EACH, *points, *points, *decays)],
                other => vec![Setup::new(TWO_EACH, other)],
            },
            Measure::HotPages { workload, .. }
            | Measure::HolderRank { workload }
            | Measure::RecordedMisses { workload }
            | Measure::RecordedRemote { workload }
            | Measure::PlacementLoss { workload, .. }
            | Measure::MemoryTime { workload, .. }
            | Measure::MemoryTimeShare { workload, .. } => vec![Setup::recorded(workload, base)],
            Measure::FairMissRateError { group, .. } | Measure::FairMissRatesWithin { group, .. } => {
                experiment.group(group).map_or_else(Vec::new, |group| {
                    [&group.machine, &group.parted].map(|machine| Setup::sampled(group, machine)).into()
                })
            }
            Measure::Variability { .. }
            | Measure::VariabilitiesAbove { .. }
            | Measure::VariabilitiesBelow { .. }
            | Measure::GreatestVariability { .. }
            | Measure::ThroughputChange { .. }
            | Measure::ThroughputsRising { .. }
            | Measure::BestEffortLoss { .. }
            | Measure::BestEffortLossMean { .. }
            | Measure::BestEffortLossGreatest { .. }
            | Measure::MeanDelay { .. }
            | Measure::GreatestDelay { .. } => self.schedules(experiment),
            &Measure::MoveLaw { points } => vec![Setup::affinity(ONE_MORE, 0, points, false)],
        }
    }

    /// The schedules that a measure of isolation reads: slow and fast in turn, or under a policy and the
    /// baseline in turn.
    fn schedules(&self, experiment: &Experiment) -> Vec<Setup> {
        use Speed::{Fast, Slow};
        let Some(group) = self.group().and_then(|name| experiment.group(name)) else { return Vec::new() };
        let base = experiment.baseline.as_str();
        let all = || group.schedules.iter();
        let of = |principal: &str| group.of(principal).into_iter();
        let setup = |schedules: &Schedules, speed, policy: &str, machine: &str| {
            Setup::beside(group, schedules, speed, policy, machine)
        };
        let slow_and_fast = |schedules: &Schedules, policy: &str, machine: &str| {
            [Slow, Fast].map(|speed| setup(schedules, speed, policy, machine))
        };
        let over_base = |schedules: &Schedules, speed, policy: &str| {
            [policy, base].map(|policy| setup(schedules, speed, policy, &group.machine))
        };
        match self {
            Measure::Variability { principal, policy, .. } => {
                of(principal).flat_map(|one| slow_and_fast(one, policy, &group.machine)).collect()
            }
            Measure::VariabilitiesAbove { policy, machine, .. }
            | Measure::VariabilitiesBelow { policy, machine, .. }
            | Measure::GreatestVariability { policy, machine, .. } => {
                all().flat_map(|one| slow_and_fast(one, policy, machine)).collect()
            }
            Measure::ThroughputChange { principal, policy, .. } => {
                of(principal).flat_map(|one| over_base(one, Slow, policy)).collect()
            }
            Measure::ThroughputsRising { policy, .. } => {
                all().flat_map(|one| over_base(one, Slow, policy)).collect()
            }
            Measure::BestEffortLoss { principal, schedule, policy, .. } => {
                of(principal).flat_map(|one| over_base(one, *schedule, policy)).collect()
            }
            Measure::BestEffortLossMean { policy, .. }
            | Measure::BestEffortLossGreatest { policy, .. }
            | Measure::MeanDelay { policy, .. }
            | Measure::GreatestDelay { policy, .. } => {
                let each =
                    |one| [Slow, Fast].into_iter().flat_map(move |speed| over_base(one, speed, policy));
                all().flat_map(each).collect()
            }
            _ => Vec::new(),
        }
    }
}
