//! Isolation on Linux: which control group is of which class, what its tasks did, and what came of it.
//!
//! A class is a control group's, and of those below it that have none of their own.

mod classes;
mod recorded;
mod weighing;

pub use classes::{ClassError, Classes, OWN};
pub use recorded::Recorded;
pub(crate) use weighing::{Gate, Weighing};

use hearth_host::service::Metric;
use hearth_policy::isolation::{Bus, Confidence, Counting, Why};
use hearth_policy::planners::CacheFair;
use hearth_policy::planners::cache_fair::{Rule, Standing};
use hearth_policy::snapshot::{Class, Run};
use hearth_policy::{Plan, Planner, Snapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is to be isolated, and who counts.
#[derive(Debug)]
pub struct Isolation {
    /// Who is of which class.
    pub classes: Classes,
    /// What a miss costs.
    pub bus: Bus,
    /// Who counts misses.
    pub counter: Box<dyn Counter>,
}

/// Something that can count what runs beside what.
pub trait Counter: Debug + Send + Sync {
    /// Begins to.
    ///
    /// # Errors
    /// Why that cannot be.
    fn begin(&self) -> Result<Box<dyn Counting>, String>;
}

/// What isolation does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IsolationStatus {
    /// Why nobody counts, and nothing is made up for.
    pub not_measurable: Option<String>,
    /// The control groups that have a class.
    pub groups: Vec<GroupStatus>,
    /// The cache-fair tasks, by thread id.
    pub tasks: Vec<TaskStatus>,
}

/// A control group that was given a class, with those below it that have none of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Its path in the hierarchy.
    pub cgroup: PathBuf,
    /// Whether it is cache-fair; if not, it is best-effort.
    pub is_cache_fair: bool,
    /// Its tasks.
    pub tasks: usize,
    /// What they get of their share in the mean, in thousandths.
    pub share_permille: u32,
    /// Where its `cpu.weight` acts: what came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<WeightStatus>,
}

/// What became of a control group's `cpu.weight`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeightStatus {
    /// What it was.
    pub before: u32,
    /// What it is now.
    pub now: u32,
    /// Why it is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_alone: Option<String>,
}

impl IsolationStatus {
    /// The same for Prometheus: sums and means over tasks, for a label for each would make many series.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let strong: Vec<&TaskStatus> = self.tasks.iter().filter(|task| task.weak.is_none()).collect();
        let mean = |of: fn(&TaskStatus) -> f64| {
            strong.iter().map(|task| of(task)).sum::<f64>() / strong.len().max(1) as f64
        };
        let mut metrics = vec![
            Metric::gauge("cache_fair_tasks", "Cache-fair tasks", self.tasks.len() as u64),
            Metric::gauge(
                "cache_fair_estimated_tasks",
                "Cache-fair tasks of which it is known how fast they would be with a fair part of the cache",
                strong.len() as u64,
            ),
        ];
        if !strong.is_empty() {
            metrics.extend([
                Metric::ratio(
                    "cache_fair_speed",
                    "Instructions for each cycle, of those with a fair part of the cache: mean over estimated tasks",
                    mean(|task| task.ipc / task.fair_ipc),
                ),
                Metric::ratio(
                    "cache_fair_share",
                    "CPU time, of what weights alone would give: mean over estimated tasks",
                    mean(|task| f64::from(task.share_permille) / 1e3),
                ),
            ]);
        }
        metrics
    }
}

/// What is known of a cache-fair task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Its thread id.
    pub tid: i32,
    /// The number of its control group.
    pub group: u64,
    /// Its instructions for each cycle.
    pub ipc: f64,
    /// What they would be with a fair part of the cache; 0 if that cannot be told.
    pub fair_ipc: f64,
    /// What it gets of its share, in thousandths.
    pub share_permille: u32,
    /// Cycles that it has got beyond its nominal share; below 0 if it gave some.
    pub given_cycles: i64,
    /// Why nothing follows from its estimate.
    pub weak: Option<Why>,
}

impl From<Standing> for TaskStatus {
    fn from(standing: Standing) -> Self {
        let Standing { tid, group, ipc, fair_ipc, share_permille, given_cycles, confidence } = standing;
        let weak = match confidence {
            Confidence::Strong => None,
            Confidence::Weak(why) => Some(why),
        };
        Self { tid, group, ipc, fair_ipc, share_permille, given_cycles, weak }
    }
}

/// What the thread that plans tells of isolation.
pub(crate) type Told = Arc<Mutex<IsolationStatus>>;

pub(crate) fn lock(told: &Told) -> MutexGuard<'_, IsolationStatus> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fills in what snapshots have of isolation.
pub(crate) struct Isolating {
    isolation: Arc<Isolation>,
    classes: Classes,
    /// From when a cache-fair task is there.
    counting: Option<Box<dyn Counting>>,
    has_failed: bool,
    told: Told,
}

impl Isolation {
    /// The planner, and who fills in what it is told, begun anew for each scheduler.
    pub(crate) fn parts(self: &Arc<Self>, told: &Told) -> (Telling, impl Fn() -> Isolating + Send + use<>) {
        // Programs of today have phases, and a share that follows from the last one's would be wrong by far.
        let planner = CacheFair::new(self.bus, Rule { phases: true, ..Rule::default() });
        let (isolation, told_by_planner, told) = (Arc::clone(self), Arc::clone(told), Arc::clone(told));
        let begin = move || Isolating::new(&isolation, &told);
        (Telling { planner, told: told_by_planner }, begin)
    }
}

impl Isolating {
    fn new(isolation: &Arc<Isolation>, told: &Told) -> Self {
        Self {
            isolation: Arc::clone(isolation),
            classes: isolation.classes.clone(),
            counting: None,
            has_failed: false,
            told: Arc::clone(told),
        }
    }

    /// Classes and runs of the tasks of a snapshot.
    pub(crate) fn follow(&mut self, snapshot: &mut Snapshot) {
        snapshot.classes = self.classes.of(snapshot);
        match self.runs(snapshot) {
            Ok(runs) => snapshot.runs = runs,
            // Where nobody can count, that is told, and nothing is made up for.
            Err(why) => {
                (self.counting, self.has_failed) = (None, true);
                lock(&self.told).not_measurable = Some(why);
            }
        }
    }

    fn runs(&mut self, snapshot: &Snapshot) -> Result<Vec<Run>, String> {
        let wants = snapshot.classes.values().any(|class| *class == Class::CacheFair);
        if self.counting.is_none() && wants && !self.has_failed {
            self.counting = Some(self.isolation.counter.begin()?);
        }
        self.counting.as_mut().map_or(Ok(Vec::new()), |counting| counting.runs(snapshot))
    }

    /// The group that one has its class from.
    pub(crate) fn origin(&self, number: u64) -> Option<&Path> {
        self.classes.origin(number)
    }

    /// What groups get by a plan.
    pub(crate) fn groups(&self, snapshot: &Snapshot, plan: &Plan) -> BTreeMap<PathBuf, GroupStatus> {
        let mut sums: BTreeMap<&Path, Sum> = BTreeMap::new();
        for task in &snapshot.tasks {
            let Some(class) = snapshot.classes.get(&task.group) else { continue };
            let Some(origin) = self.classes.origin(task.group) else { continue };
            let sum = sums.entry(origin).or_default();
            sum.is_cache_fair = *class == Class::CacheFair;
            sum.tasks += 1;
            if task.is_runnable() {
                sum.runnable += 1;
                sum.shares += plan.tasks.get(&task.tid).map_or(1000, |target| target.share_permille);
            }
        }
        sums.into_iter().map(|(path, sum)| (path.to_owned(), sum.status(path))).collect()
    }

    /// Tells of them.
    pub(crate) fn tell(&self, groups: impl IntoIterator<Item = GroupStatus>) {
        lock(&self.told).groups = groups.into_iter().collect();
    }
}

/// The tasks of a group, added up.
#[derive(Default)]
struct Sum {
    is_cache_fair: bool,
    tasks: usize,
    runnable: u32,
    shares: u32,
}

impl Sum {
    fn status(&self, path: &Path) -> GroupStatus {
        GroupStatus {
            cgroup: path.to_owned(),
            is_cache_fair: self.is_cache_fair,
            tasks: self.tasks,
            share_permille: self.shares.checked_div(self.runnable).unwrap_or(1000),
            weight: None,
        }
    }
}

/// The planner, which also tells how cache-fair tasks stand.
pub(crate) struct Telling {
    planner: CacheFair,
    told: Told,
}

impl Planner for Telling {
    fn name(&self) -> &'static str {
        self.planner.name()
    }

    fn plan(&mut self, snapshot: &Snapshot, plan: &mut Plan) {
        self.planner.plan(snapshot, plan);
        lock(&self.told).tasks = self.planner.standings().map(TaskStatus::from).collect();
    }
}
