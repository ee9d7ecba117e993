//! An experiment: a paper's workloads and policies, and the claims that they check, as TOML.

use crate::data;
use crate::isolation::{self, Group, Speed};
use crate::parallel::Setting;
use crate::policies::Policies;
use crate::table::Table;
use hearth_machine::located::{self, Fault, LocatedError, UnreadableError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// A paper's worth of runs and claims, read from `experiments/*.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name on the command line: `T`.
    pub id: String,
    /// One line.
    pub title: String,
    /// Where it comes from.
    pub paper: String,
    /// The machine, by name.
    pub machine: String,
    /// The policy that others are compared with.
    pub baseline: String,
    /// The program whose pages are followed over time in the report.
    pub followed: Option<String>,
    /// Task-parallel programs that are run by themselves, in each of the settings.
    #[serde(default)]
    pub programs: Vec<String>,
    /// How they are run.
    #[serde(rename = "setting", default)]
    pub settings: Vec<Setting>,
    /// Programs whose isolation from others is measured.
    #[serde(rename = "group", default)]
    pub groups: Vec<Group>,
    /// The paper's tables, to be printed beside ours.
    #[serde(rename = "table", default)]
    pub tables: Vec<Table>,
    /// What is claimed.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
}

/// Whether a claim describes the programs or is a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Describes the programs: they were calibrated to meet it.
    Input,
    /// Comes out of the mechanism.
    Outcome,
}

/// One claim; it holds if each of its rows does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// For example `T6`.
    pub id: String,
    /// Input or outcome.
    pub kind: Kind,
    /// In a sentence.
    pub text: String,
    /// Its figures.
    pub rows: Vec<Row>,
    /// Settings, policies or orders of tasks by those that lack what the claim is about: with these in their
    /// places it must not hold.
    #[serde(default)]
    pub mutant: BTreeMap<String, String>,
}

/// One figure: what is measured, the paper's value, and the band in which ours must be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What is measured.
    pub measure: Measure,
    /// The paper's figure, if it gives one.
    pub paper: Option<f64>,
    /// Least value that holds.
    pub low: Option<f64>,
    /// Greatest value that holds.
    pub high: Option<f64>,
}

/// What a row measures, by the name given as `of`. Changes are in percent of the baseline's value, shares in percent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are names of programs, workloads and policies")]
pub enum Measure {
    /// Extra misses in a dispatch interval that starts with flushed caches; the application alone.
    ReloadMisses {
        application: String,
    },
    /// Dispatch intervals of `from_ms` up to `to_ms`, of those of 1 ms or more; the application alone.
    IntervalShare {
        application: String,
        from_ms: u64,
        to_ms: u64,
    },
    /// Dispatch intervals that ended so; the application alone.
    EndShare {
        application: String,
        end: EndName,
    },
    /// Misses in an effective time slice that starts with flushed caches.
    FlushedSliceMisses {
        application: String,
        workload: String,
    },
    /// Mean effective time slice, relative to the baseline's.
    SliceRatio {
        workload: String,
        policy: String,
    },
    /// Change of the number of misses.
    MissesChange {
        workload: String,
        policy: String,
    },
    /// Change of the number of misses against another policy than the baseline.
    MissesChangeOver {
        workload: String,
        policy: String,
        over: String,
    },
    /// Change of misses less the least change of the other workloads: below 0 if it is the largest drop.
    MissesChangeLead {
        workload: String,
        policy: String,
        others: Vec<String>,
    },
    /// Change of the mean execution time.
    TimeChange {
        workload: String,
        policy: String,
    },
    /// Change of the mean execution time against another policy than the baseline.
    TimeChangeOver {
        workload: String,
        policy: String,
        over: String,
    },
    /// Change of the mean execution time, less another policy's, in points.
    TimeChangeMinus {
        workload: String,
        policy: String,
        minus: String,
    },
    /// Idle time, less the baseline's, in points.
    IdleRise {
        workload: String,
        policy: String,
    },
    /// How far apart the rates are at which the applications gain CPU time, while all run.
    SlopeSpread {
        workload: String,
        policy: String,
    },
    /// How often a second an application's tasks are switched: to another task's time on the CPU, to another
    /// CPU, to another memory node. All copies together, over their response times.
    SwitchRate {
        workload: String,
        application: String,
        policy: String,
        to: SwitchName,
    },
    /// The rate of such switches in percent of the baseline's.
    SwitchesLeft {
        workload: String,
        application: String,
        policy: String,
        to: SwitchName,
    },
    /// Each application's response time over its time under the baseline: the mean.
    ResponseTime {
        workload: String,
        policy: String,
    },
    /// The same: the standard deviation over the applications.
    ResponseSpread {
        workload: String,
        policy: String,
    },
    /// The same mean, less another policy's.
    ResponseMinus {
        workload: String,
        policy: String,
        minus: String,
    },
    /// Share of the misses that local memory or a cache of the own node served, less another policy's, in points.
    LocalRise {
        workload: String,
        policy: String,
        over: String,
    },
    /// Change of an application's CPU time against another policy; all copies together.
    CpuTimeOver {
        workload: String,
        application: String,
        policy: String,
        over: String,
    },
    /// Switches to another node after which the share of local pages comes back to where it was, before the
    /// next one; in percent of those that are further apart than two samples.
    Recovery {
        workload: String,
        application: String,
        policy: String,
    },
    /// Mean effective time slice under affinity (a, a), relative to 40 a ms.
    SliceLaw {
        points: u32,
        decays: bool,
    },
    /// Least lack of CPU time of a task that moves under affinity (0, a), relative to 20 a ms.
    MoveLaw {
        points: u32,
    },
    /// Of the hottest pages by TLB misses, the share that is among the hottest as many by cache misses.
    HotPages {
        workload: String,
        percent: usize,
    },
    /// Rank by TLB misses of the CPU with most cache misses to a hot page, in seconds of their own.
    HolderRank {
        workload: String,
    },
    /// Cache misses that are local with each page placed by cache misses, less those with each placed
    /// by TLB misses: in points of all cache misses, or relative to the former.
    PlacementLoss {
        workload: String,
        relative: bool,
    },
    /// Time for misses and moves under a page policy, in seconds of CPU time.
    MemoryTime {
        workload: String,
        pages: String,
    },
    /// The same in percent of another page policy's.
    MemoryTimeShare {
        workload: String,
        pages: String,
        of_pages: String,
    },
    /// Change of the CPU time of a parallel section against another setting: its time on all CPUs that the
    /// program has.
    ParallelTime {
        program: String,
        setting: String,
        over: String,
    },
    /// That change less the greatest of other programs', in points: above 0 if it is the worst.
    ParallelTimeLead {
        program: String,
        setting: String,
        over: String,
        others: Vec<String>,
    },
    /// Change of the number of misses in a parallel section against another setting.
    ParallelMisses {
        program: String,
        setting: String,
        over: String,
    },
    /// Change of the time that each application is in its parallel section: the mean of the applications.
    ParallelSections {
        workload: String,
        policy: String,
    },
    /// The same, less another policy's, in points.
    ParallelSectionsMinus {
        workload: String,
        policy: String,
        minus: String,
    },
    /// The last busy time unit of the data-affinity paper's example, in this order of tasks.
    LastBusyUnit {
        order: String,
    },
    /// Cases of the same paper's model, one CPU and few tasks, in which this order costs no more than any other.
    OptimalCases {
        order: String,
    },
    /// Steps of batching a task, with a million tasks over with a thousand.
    BatchingSteps,
    /// By what the baseline's misses of second levels are divided: of an application, or of all.
    L2MissesDivided {
        workload: String,
        application: Option<String>,
        policy: String,
    },
    /// The same of third levels.
    L3MissesDivided {
        workload: String,
        application: Option<String>,
        policy: String,
    },
    /// The same of second levels, by the programs' own code.
    OwnL2MissesDivided {
        workload: String,
        application: Option<String>,
        policy: String,
    },
    /// Change of the mean execution time, less another workload's, in points.
    TimeChangeBeyond {
        workload: String,
        than: String,
        policy: String,
    },
    /// Execution time that the policy saves over the baseline, in seconds.
    TimeSaved {
        workload: String,
        policy: String,
    },
    /// The same, less what it saves of another workload.
    TimeSavedBeyond {
        workload: String,
        than: String,
        policy: String,
    },
    /// By how much a program's estimated fair miss rate is off the one that a parted cache shows, in percent.
    FairMissRateError {
        group: String,
        program: String,
        by: String,
    },
    /// Programs of which it is off by so much at most.
    FairMissRatesWithin {
        group: String,
        percent: u32,
        by: String,
    },
    /// How much longer a principal takes in its slow schedule than in its fast one, in percent.
    Variability {
        group: String,
        principal: String,
        policy: String,
    },
    /// Principals of which that is more than so much, on a machine.
    VariabilitiesAbove {
        group: String,
        percent: u32,
        policy: String,
        machine: String,
    },
    /// Principals of which it is less.
    VariabilitiesBelow {
        group: String,
        percent: u32,
        policy: String,
        machine: String,
    },
    /// The greatest of a group.
    GreatestVariability {
        group: String,
        policy: String,
        machine: String,
    },
    /// Change of the instructions for each cycle of all programs of a principal's slow schedule.
    ThroughputChange {
        group: String,
        principal: String,
        policy: String,
    },
    /// Slow schedules in which that rises, less those in which it falls.
    ThroughputsRising {
        group: String,
        policy: String,
    },
    /// How much less CPU time the best-effort program of a schedule has, in percent.
    BestEffortLoss {
        group: String,
        principal: String,
        schedule: Speed,
        policy: String,
    },
    /// The mean of that over all schedules.
    BestEffortLossMean {
        group: String,
        policy: String,
    },
    /// The greatest, of losses and gains.
    BestEffortLossGreatest {
        group: String,
        policy: String,
    },
    /// How much longer principals take than under the baseline, in percent: the mean of all schedules, or the
    /// greatest.
    MeanDelay {
        group: String,
        policy: String,
    },
    GreatestDelay {
        group: String,
        policy: String,
    },
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
enum Named {
    Setting,
    Policy,
    Order,
    Machine,
    Estimator,
}

/// Why an experiment cannot be read.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// The text is wrong; says where, and how to mend it.
    #[error(transparent)]
    Text(#[from] LocatedError),
    /// No preset has this name, and no file can be read there.
    #[error(transparent)]
    Unreadable(#[from] UnreadableError),
}

macro_rules! preset {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../experiments/", $name, ".toml")))
    };
}

const PRESETS: &[(&str, &str)] =
    &[preset!("T"), preset!("N"), preset!("M"), preset!("G"), preset!("D"), preset!("F")];

impl Experiment {
    /// The experiments that come with Hearth: name and text.
    pub fn presets() -> &'static [(&'static str, &'static str)] {
        PRESETS
    }

    /// Reads an experiment; `origin` is the file name that errors give.
    ///
    /// # Errors
    /// Text that is not TOML, an unknown key, a value of the wrong type.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ExperimentError> {
        let experiment: Self = located::read(text, origin)?;
        experiment.check().map_err(|fault| fault.locate(text, origin))?;
        Ok(experiment)
    }

    /// The setting of a name.
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.name == name)
    }

    /// The group of a name.
    pub(crate) fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// Settings can be run, and those that claims name are there.
    fn check(&self) -> Result<(), Fault> {
        for (at, setting) in self.settings.iter().enumerate() {
            if setting.invocation().is_none() {
                let what = format!("{} processes cannot run on CPUs {:?}", setting.processes, setting.cpus);
                let mend = "name a process or more, and CPUs below 64, such as \"0-7\"";
                return Err(Fault::new(format!("setting[{at}]"), what, mend));
            }
        }
        let names: Vec<&str> = self.settings.iter().map(|setting| setting.name.as_str()).collect();
        for (at, group) in self.groups.iter().enumerate() {
            let wrong = |error: isolation::ScheduleError| {
                Fault::new(format!("group[{at}]"), error.to_string(), "mend `fast` or `slow`")
            };
            group.check().map_err(wrong)?;
        }
        for (at, claim) in self.claims.iter().enumerate() {
            if let Some(wrong) = &claim.first_unknown(Named::Setting, &names) {
                let what = format!("no setting is called {wrong:?}");
                return Err(Fault::new(format!("claim[{at}]"), what, located::one_of(wrong, &names)));
            }
            if let Some(wrong) = claim
                .rows
                .iter()
                .filter_map(|row| row.measure.group())
                .find(|name| self.group(name).is_none())
            {
                let what = format!("no group is called {wrong:?}");
                let names: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
                return Err(Fault::new(format!("claim[{at}]"), what, located::one_of(wrong, &names)));
            }
            if let Some(wrong) = &claim.first_unknown(Named::Estimator, &isolation::ESTIMATORS) {
                let what = format!("no estimator is called {wrong:?}");
                let mend = located::one_of(wrong, &isolation::ESTIMATORS);
                return Err(Fault::new(format!("claim[{at}]"), what, mend));
            }
            if let Some(wrong) = &claim.first_unknown(Named::Order, &data::ORDERS) {
                let what = format!("no order of tasks is called {wrong:?}");
                return Err(Fault::new(format!("claim[{at}]"), what, located::one_of(wrong, &data::ORDERS)));
            }
            for (from, to) in &claim.mutant {
                claim
                    .check_mutant(from, to, &names)
                    .map_err(|(what, mend)| Fault::new(format!("claim[{at}].mutant"), what, mend))?;
            }
        }
        Ok(())
    }

    /// This experiment with the mutant of each claim in the claim's place, and without the claims that have
    /// none: no claim of it may hold.
    pub fn mutated(&self) -> Self {
        let mut mutated = self.clone();
        mutated.claims.retain(|claim| !claim.mutant.is_empty());
        for claim in &mut mutated.claims {
            for (_, name) in claim.rows.iter_mut().flat_map(|row| row.measure.names_mut()) {
                if let Some(other) = claim.mutant.get(name) {
                    name.clone_from(other);
                }
            }
        }
        mutated
    }

    /// A preset by name, or a file.
    ///
    /// # Errors
    /// [`ExperimentError`].
    pub fn load(name: &str) -> Result<Self, ExperimentError> {
        if let Some((id, text)) = PRESETS.iter().find(|(id, _)| id.eq_ignore_ascii_case(name)) {
            return Self::parse(text, &format!("experiments/{id}.toml"));
        }
        Self::parse(&located::read_file(name, "experiment", PRESETS)?, name)
    }
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
    fn names_mut(&mut self) -> Vec<(Named, &mut String)> {
        let (named, names) = match self {
            Measure::ParallelTime { setting, over, .. }
            | Measure::ParallelTimeLead { setting, over, .. }
            | Measure::ParallelMisses { setting, over, .. } => (Named::Setting, vec![setting, over]),
            Measure::ParallelSections { policy, .. }
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
            Measure::ParallelSectionsMinus { policy, minus, .. } => (Named::Policy, vec![policy, minus]),
            Measure::LastBusyUnit { order } | Measure::OptimalCases { order } => (Named::Order, vec![order]),
            _ => return Vec::new(),
        };
        names.into_iter().map(|name| (named, name)).collect()
    }

    /// Those of one kind.
    fn names(&self, kind: Named) -> Vec<String> {
        let mut copy = self.clone();
        let of_kind = copy.names_mut().into_iter().filter(|(named, _)| *named == kind);
        of_kind.map(|(_, name)| std::mem::take(name)).collect()
    }
}

impl Claim {
    fn names(&self, kind: Named) -> impl Iterator<Item = String> {
        self.rows.iter().flat_map(move |row| row.measure.names(kind))
    }

    /// The first name of a kind that is not among those that there are.
    fn first_unknown(&self, kind: Named, known: &[&str]) -> Option<String> {
        self.names(kind).find(|name| !known.contains(&name.as_str()))
    }

    /// A mutant puts something that exists in the place of something that the claim names; if not, what is
    /// wrong and how to mend it.
    fn check_mutant(&self, from: &str, to: &str, settings: &[&str]) -> Result<(), (String, String)> {
        let is_named = |kind| self.names(kind).any(|name| name == from);
        let machines: Vec<&str> = hearth_machine::presets().iter().map(|(name, _)| *name).collect();
        if is_named(Named::Policy) {
            let is_there = Policies::load(to).is_ok();
            let wrong =
                || (format!("no policy is called {to:?}"), "name one of `hearth list policies`".into());
            return if is_there { Ok(()) } else { Err(wrong()) };
        }
        let (kind, names) = if is_named(Named::Order) {
            ("order of tasks", &data::ORDERS[..])
        } else if is_named(Named::Machine) {
            ("machine", &machines[..])
        } else if is_named(Named::Estimator) {
            ("estimator", &isolation::ESTIMATORS[..])
        } else {
            ("setting", settings)
        };
        match [from, to].into_iter().find(|name| !names.contains(name)) {
            Some(wrong) => Err((format!("no {kind} is called {wrong:?}"), located::one_of(wrong, names))),
            None => Ok(()),
        }
    }
}
