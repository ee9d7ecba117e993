//! Which runs a measure needs.

use crate::experiment::{Experiment, Measure};
use crate::job::{Job, Workload};
use crate::parallel::Setting;
use crate::policies::Policies;
use hearth_machine::Machine;
use hearth_policy::{Policy, PolicyError};
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
        Self { workload: workload.into(), policy, flush: FlushName::Never, records: false, setting: None }
    }

    fn recorded(workload: &str, policy: &str) -> Self {
        Self { records: true, ..Self::new(workload, policy) }
    }

    fn flushed(workload: &str, policy: &str, flush: FlushName) -> Self {
        Self { flush, ..Self::new(workload, policy) }
    }

    fn affinity(workload: &str, a_t: u32, a_p: u32, decays: bool) -> Self {
        let policy = PolicyName::Affinity { a_t, a_p, decays };
        Self { workload: workload.into(), policy, flush: FlushName::Never, records: false, setting: None }
    }

    fn set(program: &str, policy: &str, setting: &Setting) -> Self {
        Self { setting: Some(setting.clone()), ..Self::new(program, policy) }
    }

    /// The run of this set-up with a seed.
    ///
    /// # Errors
    /// [`PolicyError`] if there is no such policy.
    pub fn job(&self, machine: &Arc<Machine>, scale: f64, seed: u64) -> Result<Job, PolicyError> {
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
        let options = Options { flush, record_misses: self.records, ..Options::default() };
        let workload = match &self.setting {
            Some(setting) => Workload::Set { program: self.workload.clone(), setting: setting.clone() },
            None => Workload::Mix(self.workload.clone()),
        };
        Ok(Job { machine: Arc::clone(machine), workload, policies, scale, seed, options })
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
            | Measure::TimeChangeOver { workload, policy, over } => {
                vec![Setup::new(workload, policy), Setup::new(workload, over)]
            }
            Measure::TimeChangeMinus { workload, policy, minus } => {
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
            &Measure::SliceLaw { points, decays } => {
                vec![Setup::affinity(TWO_EACH, points, points, decays)]
            }
            Measure::HotPages { workload, .. }
            | Measure::HolderRank { workload }
            | Measure::PlacementLoss { workload, .. }
            | Measure::MemoryTime { workload, .. }
            | Measure::MemoryTimeShare { workload, .. } => vec![Setup::recorded(workload, base)],
            &Measure::MoveLaw { points } => vec![Setup::affinity(ONE_MORE, 0, points, false)],
        }
    }
}
