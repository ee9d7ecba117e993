//! What the daemon tells: of itself, of decisions, of tasks.

use super::parts::{Parts, Work};
use crate::isolation::IsolationStatus;
use crate::planning::Planning;
use crate::{CpuStats, Decision, FragmentsStatus, PlannerStatus, ProgramStatus, Scheduler, Task};
use hearth_host::service::{Metric, Number};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// What the daemon tells of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of this structure.
    pub schema: u32,
    /// Hearth's version.
    pub version: String,
    /// The daemon.
    pub pid: u32,
    /// The policy's name; nothing if the kernel's own scheduler schedules.
    pub policy: Option<String>,
    /// The cgroup whose tasks alone are Hearth's.
    pub only: Option<PathBuf>,
    /// The planner, if the scheduler has one.
    #[serde(default)]
    pub planner: Option<PlannerStatus>,
    /// Programs that are scheduled as one.
    #[serde(default)]
    pub programs: Vec<ProgramStatus>,
    /// What tasks declare to work on, if any has.
    #[serde(default)]
    pub fragments: Option<FragmentsStatus>,
    /// What is done for programs whose speed is not to depend on their neighbours, if there are to be any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationStatus>,
    /// Seconds since the scheduler was loaded.
    pub up_s: f64,
    /// Seconds until it ends by itself, if it does.
    #[serde(default)]
    pub left_s: Option<f64>,
    /// How often the scheduler was loaded again after a wait that the kernel counted and that did not happen.
    #[serde(default)]
    pub false_waits: u64,
    /// Each online CPU and what its dispatches led to.
    pub cpus: Vec<CpuStatus>,
    /// What each service that works beside the scheduler tells, by its name.
    #[serde(flatten)]
    pub services: BTreeMap<String, Value>,
}

/// One CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuStatus {
    /// Its number.
    pub cpu: usize,
    /// Counts since the scheduler was loaded.
    #[serde(flatten)]
    pub stats: CpuStats,
}

impl Status {
    /// Of a count all CPUs'.
    pub fn sum(&self, field: fn(&CpuStats) -> u64) -> u64 {
        self.cpus.iter().map(|cpu| field(&cpu.stats)).sum()
    }

    /// What a service tells, if it is at work.
    pub fn service<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        T::deserialize(self.services.get(name)?).ok()
    }
}

pub(super) fn status(parts: &Parts, work: &Work) -> Status {
    let stats = parts.scheduler.as_ref().map(Scheduler::stats).unwrap_or_default();
    Status {
        schema: 1,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        policy: work.policy.as_ref().map(|policy| policy.name.clone()),
        only: work.only.clone(),
        planner: parts.planning.as_ref().map(Planning::status),
        programs: parts.programs.list(),
        fragments: parts.scheduler.as_ref().and_then(Scheduler::fragments),
        isolation: parts.isolation(work),
        up_s: parts.since.elapsed().as_secs_f64(),
        left_s: parts.until.map(|until| until.saturating_duration_since(Instant::now()).as_secs_f64()),
        false_waits: parts.false_waits,
        cpus: stats.into_iter().map(|(cpu, stats)| CpuStatus { cpu, stats }).collect(),
        services: parts
            .services
            .iter()
            .map(|(name, service)| ((*name).to_owned(), service.status()))
            .collect(),
    }
}

/// The number of a program that is scheduled as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramId {
    /// Among all that ever asked.
    pub id: u32,
}

/// Decisions that were told, and what was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// By time.
    pub decisions: Vec<Decision>,
    /// Decisions that found no room, since the scheduler was loaded.
    pub lost: u64,
}

impl From<(Vec<Decision>, u64)> for Told {
    fn from((decisions, lost): (Vec<Decision>, u64)) -> Self {
        Self { decisions, lost }
    }
}

/// What the scheduler remembers of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasks {
    /// Those of the threads asked for that are Hearth's.
    pub tasks: Vec<Task>,
}

/// The same for Prometheus. Sums over all CPUs: a label for each would make thousands of series of a
/// large machine.
pub(super) fn metrics(parts: &Parts, work: &Work) -> Vec<Metric> {
    let mut metrics = scheduler_metrics(&status(parts, work));
    metrics.extend(parts.services.values().flat_map(|service| service.metrics()));
    Metric::families(metrics)
}

fn scheduler_metrics(status: &Status) -> Vec<Metric> {
    let sum = |field| status.sum(field);
    let policy = status.policy.clone().unwrap_or_else(|| "none".into());
    let info = vec![("version", status.version.clone()), ("policy", policy)];
    let mut metrics = vec![
        Metric {
            values: vec![(info, Number::Whole(1))],
            ..Metric::gauge("build_info", "Always 1: the version, and the policy in force", 1)
        },
        Metric::counters(
            "dispatches",
            "Looks of a CPU for its next task, by where that came from",
            "source",
            [
                ("kept", sum(|cpu| cpu.kept)),
                ("own_queue", sum(|cpu| cpu.own)),
                ("cache_domain", sum(|cpu| cpu.domain)),
                ("other_domain", sum(|cpu| cpu.foreign)),
                ("none", sum(|cpu| cpu.idle)),
                ("late", sum(|cpu| cpu.late)),
                ("stray", sum(|cpu| cpu.strays)),
                ("gang", sum(|cpu| cpu.members)),
                ("fragment", sum(|cpu| cpu.fragments)),
            ],
        ),
        Metric::counters(
            "waits_kept",
            "Waits that ended where they began though a CPU idled, for the move would have cost more, by where it was",
            "idle",
            [("same_cache", sum(|cpu| cpu.stayed_near)), ("beyond", sum(|cpu| cpu.stayed_far))],
        ),
        Metric::seconds(
            "kept_waiting",
            "For how long these waited beside idle CPUs",
            sum(|cpu| cpu.stayed_ns) as f64 / 1e9,
        ),
        Metric::counter(
            "moves_refused",
            "Tasks that an idle CPU left though they had paid for the move, for it was soon to be wanted again",
            sum(|cpu| cpu.brief),
        ),
        Metric::counter(
            "wakes_in_vain",
            "CPUs woken for a task that another had taken",
            sum(|cpu| cpu.in_vain),
        ),
        Metric::counter(
            "idle_placements",
            "Tasks that woke up and were placed on an idle CPU",
            sum(|cpu| cpu.direct),
        ),
        Metric::counter("preemptions", "Tasks that woke up and preempted another", sum(|cpu| cpu.preempted)),
        Metric {
            is_counter: false,
            ..Metric::seconds("uptime", "Time since Hearth began, or loaded the scheduler again", status.up_s)
        },
        Metric::gauge("cpus", "CPUs that are scheduled", status.cpus.len() as u64),
    ];
    metrics.extend(status.fragments.iter().flat_map(|fragments| {
        [
            Metric::gauge("fragments", "Fragments of data that tasks declare", fragments.fragments as u64),
            Metric::counter("fragments_refused", "Declarations that found no place", fragments.refused),
        ]
    }));
    metrics.extend(status.isolation.iter().flat_map(IsolationStatus::metrics));
    metrics.extend(status.planner.iter().flat_map(|planner| planner.account.metrics(&planner.name)));
    metrics
}

/// The answer to a request that cannot be granted.
#[derive(Serialize, Deserialize)]
pub(super) struct Refusal {
    pub(super) error: String,
    #[serde(default)]
    pub(super) kind: RefusalKind,
}

/// Why a request cannot be granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// It did not work.
    #[default]
    Failed,
    /// It is wrong.
    Wrong,
    /// This machine cannot do it.
    Impossible,
    /// Who asks may not.
    NotAllowed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_host::planner::Account;
    use serde_json::json;

    fn status() -> Status {
        let stats = CpuStats {
            kept: 1,
            own: 2,
            domain: 3,
            foreign: 4,
            direct: 5,
            preempted: 6,
            idle: 7,
            late: 8,
            strays: 9,
            members: 10,
            fragments: 11,
            stayed_near: 12,
            stayed_far: 13,
            stayed_ns: 14_000_000_000,
            brief: 15,
            in_vain: 16,
        };
        Status {
            schema: 1,
            version: "1.2.3".into(),
            pid: 1,
            policy: Some("fair".into()),
            only: None,
            planner: None,
            programs: Vec::new(),
            fragments: None,
            isolation: None,
            up_s: 1.5,
            left_s: None,
            false_waits: 0,
            cpus: vec![CpuStatus { cpu: 0, stats }, CpuStatus { cpu: 4, stats }],
            services: BTreeMap::new(),
        }
    }

    #[test]
    fn metrics_are_sums_over_all_cpus() {
        let metrics = scheduler_metrics(&status());
        let values = |name: &str| &metrics.iter().find(|metric| metric.name == name).unwrap().values;
        assert_eq!(values("dispatches")[1].1, Number::Whole(4));
        assert_eq!(values("dispatches")[4].1, Number::Whole(14));
        assert_eq!(values("dispatches")[5].1, Number::Whole(16));
        let counts = |name: &str| values(name).iter().map(|(_, value)| *value).collect::<Vec<_>>();
        assert_eq!(counts("dispatches")[6..], [18, 20, 22].map(Number::Whole));
        assert_eq!(counts("waits_kept"), [24, 26].map(Number::Whole));
        assert_eq!(counts("kept_waiting"), [Number::Real(28.0)]);
        assert_eq!(counts("moves_refused"), [Number::Whole(30)]);
        assert_eq!(counts("wakes_in_vain"), [Number::Whole(32)]);
        assert_eq!(values("idle_placements")[0].1, Number::Whole(10));
        assert_eq!(values("preemptions")[0].1, Number::Whole(12));
        assert_eq!(values("uptime")[0].1, Number::Real(1.5));
        assert_eq!(values("cpus")[0].1, Number::Whole(2));
        assert_eq!(values("build_info")[0].0[1], ("policy", "fair".to_owned()));
    }

    #[test]
    fn fragments_are_told_once_a_task_has_declared_one() {
        let fragments = FragmentsStatus { fragments: 5, most: 16, tasks: 9, refused: 2 };
        let metrics = scheduler_metrics(&Status { fragments: Some(fragments), ..status() });
        let values = |name: &str| &metrics.iter().find(|metric| metric.name == name).unwrap().values;
        assert_eq!(values("fragments")[0].1, Number::Whole(5));
        assert_eq!(values("fragments_refused")[0].1, Number::Whole(2));
        assert!(scheduler_metrics(&status()).iter().all(|metric| !metric.name.starts_with("fragments")));
    }

    #[test]
    fn the_planners_account_is_told_under_its_name() {
        let account = Account { steps: 9, published: 2, refused: 1, age_s: Some(0.1), cpu_s: 0.5 };
        let planner = PlannerStatus { name: "masks".into(), account, ..PlannerStatus::default() };
        let metrics = scheduler_metrics(&Status { planner: Some(planner), ..status() });
        let values = |name: &str| &metrics.iter().find(|metric| metric.name == name).unwrap().values;
        assert_eq!(values("planner_steps")[0], (vec![("planner", "masks".to_owned())], Number::Whole(9)));
        assert_eq!(
            values("planner_plans").iter().map(|(_, value)| *value).collect::<Vec<_>>(),
            [2, 1].map(Number::Whole)
        );
        assert_eq!(values("planner_age")[0].1, Number::Real(0.1));
        assert_eq!(values("planner_cpu")[0].1, Number::Real(0.5));
        assert!(scheduler_metrics(&status()).iter().all(|metric| !metric.name.starts_with("planner")));
    }

    #[test]
    fn what_a_service_tells_stands_beside_the_rest_under_its_name() {
        let services = BTreeMap::from([("pages".to_owned(), json!({ "moved": 3 }))]);
        let told = serde_json::to_value(Status { services, ..status() }).unwrap();
        assert_eq!(told["pages"]["moved"], 3);
        let read: Status = serde_json::from_value(told).unwrap();
        assert_eq!(read.service::<BTreeMap<String, u64>>("pages").unwrap()["moved"], 3);
        assert_eq!(read.service::<u64>("pages"), None);
        assert_eq!(read.service::<u64>("other"), None);
    }
}
