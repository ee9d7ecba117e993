//! Whose speed is not to depend on neighbours: options of `hearth start`, and what its daemon tells of it.

use super::start::failure;
use anyhow::anyhow;
use clap::Args;
use comfy_table::Cell;
use hearth_command::failure::Failure;
use hearth_command::table::{number, table};
use hearth_host::cgroup;
use hearth_linux::isolation::{Classes, Counter, Isolation, IsolationStatus, Recorded, TaskStatus};
use hearth_machine::host;
use hearth_observe::COUNTERS_PERCENT;
use hearth_observe::neighbours::{self, follow::Follow};
use hearth_policy::ClassNames;
use hearth_policy::isolation::{Bus, Counting};
use hearth_policy::snapshot::Class;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug, Args)]
pub struct IsolationChoice {
    /// Have the speed of this cgroup's tasks not depend on who shares a cache with them: a path in the
    /// hierarchy, a unit's name, or user:NAME; may be given again
    #[arg(long, value_name = "CGROUP", conflicts_with = "pages_only")]
    pub cache_fair: Vec<String>,
    /// Have this cgroup's tasks pay for it; may be given again
    #[arg(long, value_name = "CGROUP", conflicts_with = "pages_only")]
    pub best_effort: Vec<String>,
    /// What the kernel counts by itself stands for what a CPU would: for tests
    #[arg(long, hide = true)]
    software_counters: bool,
    /// Runs in this file stand for what a CPU would count: for tests
    #[arg(long, hide = true, value_name = "FILE", conflicts_with = "software_counters")]
    recorded_counters: Option<PathBuf>,
}

impl IsolationChoice {
    /// The same, and what a policy says.
    pub fn with(&self, named: &ClassNames) -> Self {
        let mut all = self.clone();
        all.cache_fair.extend_from_slice(&named.cache_fair);
        all.best_effort.extend_from_slice(&named.best_effort);
        all
    }

    /// Whether any class is named.
    pub fn names_classes(&self) -> bool {
        !self.cache_fair.is_empty() || !self.best_effort.is_empty()
    }

    /// What is to be isolated.
    pub fn isolation(&self) -> Result<Arc<Isolation>, Failure> {
        let mut classes = Classes::default();
        for (names, class) in [(&self.cache_fair, Class::CacheFair), (&self.best_effort, Class::BestEffort)] {
            for name in names {
                classes.say(path(name)?, class).map_err(Failure::input)?;
            }
        }
        let host = host::read(Path::new("/")).map_err(Failure::failed)?;
        let machine = host.to_machine().map_err(Failure::failed)?;
        let counter: Box<dyn Counter> = match &self.recorded_counters {
            Some(file) => Box::new(Recorded::read(file).map_err(|why| Failure::Input(anyhow!(why)))?),
            None => Box::new(Counters { software: self.software_counters }),
        };
        Ok(Arc::new(Isolation { classes, bus: Bus::of(&machine.machine), counter }))
    }

    /// The same as words of a command line.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let fair = self.cache_fair.iter().flat_map(|name| ["--cache-fair", name]);
        fair.chain(self.best_effort.iter().flat_map(|name| ["--best-effort", name]))
    }
}

/// The path in the hierarchy of a cgroup. One that is given from `/` on need not be there yet.
fn path(name: &str) -> Result<PathBuf, Failure> {
    if name == "user:" {
        return Err(Failure::Input(anyhow!(
            "user: lacks its user; give a name or a number, such as user:alice or user:1000"
        )));
    }
    if let Some(user) = name.strip_prefix("user:") {
        let user = cgroup::user_slice(user).ok_or_else(|| {
            Failure::Input(anyhow!(
                "there is no user {user}; `getent passwd` lists them, and user:NUMBER needs none"
            ))
        })?;
        return Ok(user);
    }
    let version_1 = || Failure::Input(anyhow!("{name} is a cgroup of version 1; classes need version 2"));
    match cgroup::find(name) {
        Ok(folder) => cgroup::in_hierarchy(&folder).ok_or_else(version_1),
        Err(_) if is_to_come(name) => {
            Ok(cgroup::in_hierarchy(Path::new(name)).unwrap_or_else(|| name.into()))
        }
        Err(error) => Err(failure(error)),
    }
}

/// Whether a name says where a cgroup will be.
fn is_to_come(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let rest = parts.by_ref().skip(1).collect::<Vec<_>>();
    name.starts_with('/') && !rest.is_empty() && rest.iter().all(|part| matches!(part, Component::Normal(_)))
}

/// The CPUs' own counters.
#[derive(Debug)]
struct Counters {
    software: bool,
}

impl Counter for Counters {
    fn begin(&self) -> Result<Box<dyn Counting>, String> {
        let options = neighbours::Options {
            by_cgroup: false,
            duration: Duration::MAX,
            counters_percent: COUNTERS_PERCENT,
            software: self.software,
        };
        let follow = Follow::begin(&options).map_err(|error| error.to_string())?;
        Ok(Box::new(follow))
    }
}

/// What the daemon does for cache-fair programs.
pub fn text(status: &IsolationStatus) -> String {
    let mut text = match &status.not_measurable {
        Some(why) => format!("Isolation: {why}; so nothing is made up for\n"),
        None if status.groups.is_empty() => "Isolation: no cgroup of a class has tasks\n".to_owned(),
        None => String::new(),
    };
    if status.groups.is_empty() {
        return text;
    }
    let mut shown = table(&["cgroup", "class", "tasks", "share", "cpu.weight"], 2);
    for group in &status.groups {
        let weight = group.weight.as_ref().map_or(String::new(), |weight| match &weight.left_alone {
            Some(why) => why.clone(),
            None => format!("{} (own: {})", weight.now, weight.before),
        });
        shown.add_row([
            Cell::new(group.cgroup.display()),
            Cell::new(if group.is_cache_fair { "cache-fair" } else { "best-effort" }),
            number(group.tasks.to_string()),
            number(format!("{:.1} %", f64::from(group.share_permille) / 10.0)),
            Cell::new(weight),
        ]);
    }
    text += &format!("{shown}\n");
    let (strong, weak): (Vec<&TaskStatus>, Vec<_>) =
        status.tasks.iter().partition(|task| task.weak.is_none());
    for task in strong {
        text += &format!("  {}\n", sentence(task));
    }
    // Of those without an estimate one that runs tells most.
    if let Some(task) = weak.iter().max_by(|one, other| one.ipc.total_cmp(&other.ipc)) {
        let others =
            if weak.len() > 1 { format!(" ({} others neither)", weak.len() - 1) } else { String::new() };
        text += &format!("  {}{others}\n", sentence(task));
    }
    text
}

/// How a cache-fair task stands, in words.
pub fn sentence(task: &TaskStatus) -> String {
    let TaskStatus { tid, ipc, fair_ipc, share_permille, .. } = task;
    match &task.weak {
        Some(why) => format!("{tid}: {ipc:.2} instructions a cycle; no estimate: {why}"),
        None => format!(
            "{tid}: {ipc:.2} instructions a cycle, {fair_ipc:.2} with a fair part of the cache; its share is \
             {:.1} % of its own, and {:+.1} G cycles so far",
            f64::from(*share_permille) / 10.0,
            task.given_cycles as f64 / 1e9
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_policy::isolation::Why;

    #[test]
    fn a_cgroup_that_is_to_come_is_named_from_the_root_on() {
        assert!(is_to_come("/batch.slice") && is_to_come("/a/b/"));
        for name in ["batch.slice", "/", "", "/a/../b", "../a"] {
            assert!(!is_to_come(name), "{name}");
        }
        assert_eq!(path("/nobody-has-this.slice/x").unwrap(), Path::new("/nobody-has-this.slice/x"));
    }

    #[test]
    fn a_user_without_a_name_is_refused_and_one_with_a_number_need_not_be_known() {
        let Err(Failure::Input(refused)) = path("user:") else { panic!("accepted") };
        assert_eq!(
            refused.to_string(),
            "user: lacks its user; give a name or a number, such as user:alice or user:1000"
        );
        assert_eq!(path("user:4242").unwrap(), Path::new("/user.slice/user-4242.slice"));
        assert!(matches!(path("user: "), Err(Failure::Input(_))));
    }

    #[test]
    fn how_a_task_stands_is_told_in_words() {
        let strong = TaskStatus {
            tid: 7,
            group: 1,
            ipc: 0.5,
            fair_ipc: 0.625,
            share_permille: 1250,
            given_cycles: -1_500_000_000,
            weak: None,
        };
        let wanted = "7: 0.50 instructions a cycle, 0.62 with a fair part of the cache; its share is 125.0 % of \
                      its own, and -1.5 G cycles so far";
        assert_eq!(sentence(&strong), wanted);
        let weak = TaskStatus { weak: Some(Why::FewSamples), ..strong };
        assert_eq!(
            sentence(&weak),
            "7: 0.50 instructions a cycle; no estimate: too few runs were long enough"
        );
        assert_eq!(serde_json::to_value(&weak).unwrap()["weak"], "few_samples");
    }
}
