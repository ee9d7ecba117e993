//! Page migration as a service of the daemon.

use super::report::PagesStatus;
use super::{Follower, MigrationError, Nodes, Options, Reason};
use hearth_host::Error;
use hearth_host::journal::Change;
use hearth_host::service::{Metric, Running, Service, Setting};
use hearth_policy::pages::PagePolicy;
use hearth_policy::{Controller, planners};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, PoisonError};

/// The service's word in the daemon's status and requests.
pub const NAME: &str = "pages";

/// Pages are to follow their processes.
#[derive(Clone, Debug)]
pub struct FollowPages {
    /// When pages move.
    pub policy: PagePolicy,
    /// Only processes that this one has started, and theirs, are followed.
    pub of_children: bool,
}

impl Service for FollowPages {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Without a scheduler of Hearth's, NUMA balancing would do the same beside it, so that is switched
    /// off.
    fn start(&self, setting: &Setting) -> Result<Option<Box<dyn Running>>, Error> {
        if !Nodes::read(Path::new("/"))?.differ() {
            return if setting.has_scheduler { Ok(None) } else { Err(MigrationError::OneNode.into()) };
        }
        if !setting.has_scheduler && self.policy.moves_pages() {
            let mut journal = setting.journal.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, error)) =
                journal.make(Change::numa_balancing_off().into_iter().collect())?.first()
            {
                return Err(Error::file("/proc/sys/kernel/numa_balancing")((*error).into()));
            }
        }
        let options = Options {
            policy: self.policy.clone(),
            only: setting.only.clone(),
            of_children: self.of_children,
        };
        let controller = Controller::new(vec![Box::new(planners::Pages::new(&self.policy))]);
        Ok(Some(Box::new(Follower::start(options, controller, Arc::clone(&setting.journal))?)))
    }
}

impl Running for Follower {
    fn status(&self) -> Value {
        json(&Follower::status(self))
    }

    fn process(&self, pid: i32) -> Value {
        json(&Follower::process(self, pid))
    }

    fn metrics(&self) -> Vec<Metric> {
        metrics(&Follower::status(self))
    }

    fn finish(self: Box<Self>) -> Value {
        json(&Follower::finish(*self))
    }
}

fn json(told: &impl Serialize) -> Value {
    // Structs of numbers and strings always have a JSON form.
    serde_json::to_value(told).unwrap_or_default()
}

impl PagesStatus {
    /// What the service told; `None` if it is not that.
    pub fn read(told: &Value) -> Option<Self> {
        PagesStatus::deserialize(told).ok()
    }
}

fn metrics(pages: &PagesStatus) -> Vec<Metric> {
    let tally = &pages.tally;
    let failed = |reason: Reason| (reason.label(), tally.failed_pages.get(&reason).copied().unwrap_or(0));
    let stayed =
        [("frozen", pages.stayed_frozen), ("cost", pages.stayed_cost), ("quota", pages.stayed_quota)];
    let mut metrics = vec![
        Metric::counter(
            "pages_moved",
            "Base pages that were moved to where their process runs",
            tally.moved_pages,
        ),
        Metric::counter("pages_moved_bytes", "Their bytes", tally.moved_bytes),
        Metric::counter("pages_freezes", "How often a page was frozen", pages.freezes),
        Metric::seconds("pages_moving", "Time that moving took within the kernel", pages.moving_s),
        Metric::seconds(
            "pages_cpu",
            "CPU time of the thread that follows processes, moving included",
            pages.cpu_s,
        ),
        Metric::counters(
            "pages_failed",
            "Base pages that could not be moved",
            "reason",
            Reason::ALL.map(failed),
        ),
        Metric::counters("pages_stayed", "How often a page in use elsewhere stayed", "reason", stayed),
        Metric::gauge("pages_frozen", "Base pages that may not move for now", pages.frozen_pages),
        Metric::gauge("pages_processes", "Processes that ran of late", pages.processes),
        Metric::gauge("pages_sampled_processes", "Processes whose accesses are sampled", pages.sampled),
    ];
    metrics.extend(pages.planner.metrics(NAME));
    metrics.extend(pages.local_share.map(|share| {
        let help = "Of the memory that may be moved, the part on the node where its process runs";
        Metric::ratio("pages_local", help, share)
    }));
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_host::service::Number;

    #[test]
    fn pages_that_follow_their_processes_are_counted() {
        let mut pages = PagesStatus::of_none();
        pages.tally.moved_pages = 3;
        pages.tally.failed_pages.insert(Reason::NoMemory, 4);
        (pages.stayed_quota, pages.frozen_pages, pages.local_share) = (5, 6, Some(0.5));
        pages.planner.steps = 8;
        let metrics = metrics(&pages);
        let value = |name: &str, of: Option<&str>| {
            let metric = metrics.iter().find(|metric| metric.name == name).unwrap();
            let is_meant = |labels: &[(&str, String)]| labels.first().map(|(_, value)| value.as_str()) == of;
            metric.values.iter().find(|(labels, _)| is_meant(labels)).unwrap().1
        };
        for (name, of, expected) in [
            ("pages_moved", None, Number::Whole(3)),
            ("pages_failed", Some("no_memory"), Number::Whole(4)),
            ("pages_failed", Some("busy"), Number::Whole(0)),
            ("pages_stayed", Some("quota"), Number::Whole(5)),
            ("pages_frozen", None, Number::Whole(6)),
            ("pages_local", None, Number::Real(0.5)),
            ("pages_moving", None, Number::Real(0.0)),
            ("planner_steps", Some("pages"), Number::Whole(8)),
        ] {
            assert_eq!(value(name, of), expected, "{name} {of:?}");
        }
    }

    #[test]
    fn what_the_service_tells_is_read_back() {
        let pages = PagesStatus::of_none();
        assert_eq!(PagesStatus::read(&json(&pages)), Some(pages));
        assert_eq!(PagesStatus::read(&Value::Null), None);
    }
}
