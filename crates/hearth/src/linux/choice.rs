//! What Hearth is to do on this machine: options that several commands share.

use super::isolation::IsolationChoice;
use super::start::failure;
use anyhow::anyhow;
use clap::Args;
use hearth_command::complete;
use hearth_command::failure::Failure;
use hearth_command::names::{self, NO_PLANNER, planner_names};
use hearth_host::cgroup;
use hearth_host::service::Service;
use hearth_linux::daemon::Work;
use hearth_migration::FollowPages;
use hearth_policy::planners;

/// The page policy if none is named.
const PAGES: &str = "linux";

/// The word for no page policy at all.
const NO_PAGES: &str = "none";

/// The planners if none is named.
fn default_planners() -> Vec<String> {
    planners::by_default().map(|kind| kind.name.to_owned()).collect()
}

#[derive(Clone, Debug, Args)]
pub struct Choice {
    /// The policy: a name or a TOML file
    #[arg(short, long, default_value = "fair", add = complete::names(names::live_policies))]
    policy: String,
    /// When pages follow their process to another memory node: none, a name (linux if left out), or a
    /// TOML file
    #[arg(long, value_name = "PAGES", add = complete::names(names::live_page_policies))]
    pages: Option<String>,
    /// What plans while the scheduler runs, one after the other, joined by commas
    #[arg(long, default_values_t = default_planners(), value_delimiter = ',')]
    #[arg(value_parser = planner_names(planners::of_linux()))]
    planner: Vec<String>,
    /// Leave the kernel's own scheduler on and only have pages follow, in place of NUMA balancing; needs
    /// no sched_ext
    #[arg(long, conflicts_with_all = ["policy", "planner"])]
    pages_only: bool,
    /// Schedule the tasks of this cgroup only: a folder, a path in the hierarchy, or a unit's name
    #[arg(long, value_name = "CGROUP")]
    only: Option<String>,
    #[command(flatten)]
    isolation: IsolationChoice,
}

impl Choice {
    /// Reads and checks all that is named.
    pub fn work(&self) -> Result<Work, Failure> {
        self.work_with(false)
    }

    /// The same, but only pages of processes that this one has started, and of theirs, are to move.
    pub fn work_with_pages_of_children(&self) -> Result<Work, Failure> {
        self.work_with(true)
    }

    /// The same for a daemon without a scheduler: sets by cpusets, and pages only if that was asked for.
    pub fn work_without_scheduler(&self) -> Result<Work, Failure> {
        let named = self.pages.as_deref().filter(|pages| *pages != NO_PAGES);
        let pages = named.map(names::live_page_policy).transpose()?;
        let follow = |policy| Box::new(FollowPages { policy, of_children: false }) as Box<dyn Service>;
        let isolation = self.isolation.names_classes().then(|| self.isolation.isolation()).transpose()?;
        let services = pages.map(follow).into_iter().collect();
        Ok(Work { services, cpusets: true, isolation, ..Work::default() })
    }

    fn work_with(&self, of_children: bool) -> Result<Work, Failure> {
        let policy = names::live_policy(&self.policy)?;
        let policy = (!self.pages_only).then_some(policy);
        let pages = match self.pages.as_deref().unwrap_or(PAGES) {
            NO_PAGES => None,
            name => Some(names::live_page_policy(name)?),
        };
        let follow = |policy| Box::new(FollowPages { policy, of_children }) as Box<dyn Service>;
        let services: Vec<_> = pages.map(follow).into_iter().collect();
        if policy.is_none() && services.is_empty() {
            return Err(Failure::Input(anyhow!(
                "--pages-only with --pages none would do nothing; leave one of them out"
            )));
        }
        let only = self.only.as_deref().map(cgroup::find).transpose().map_err(failure)?;
        let named = self.planner.iter().filter(|planner| *planner != NO_PLANNER);
        let (isolating, planners): (Vec<_>, Vec<_>) =
            named.cloned().partition(|planner| planner == planners::CACHE_FAIR);
        let classes = match &policy {
            Some(policy) => self.isolation.with(&policy.isolation),
            None => self.isolation.clone(),
        };
        let isolates = !isolating.is_empty() || classes.names_classes();
        let isolation = isolates.then(|| classes.isolation()).transpose()?;
        Ok(Work { policy, services, only, planners, isolation, ..Work::default() })
    }

    /// Whether it says that pages are to move.
    pub fn asks_for_pages(&self) -> bool {
        self.pages_only || self.pages.as_ref().is_some_and(|pages| pages != NO_PAGES)
    }

    /// Whether the kernel's own scheduler is to stay on.
    pub fn is_pages_only(&self) -> bool {
        self.pages_only
    }

    /// The same, but pages stay.
    pub fn without_pages(self) -> Self {
        Self { pages: Some(NO_PAGES.to_owned()), ..self }
    }

    /// The same as words of a command line.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let planners;
        if self.pages_only {
            words.push("--pages-only");
        } else {
            words.extend(["--policy", &self.policy]);
            planners = self.planner.join(",");
            if self.planner != default_planners() {
                words.extend(["--planner", &planners]);
            }
        }
        for (option, value) in [("--pages", &self.pages), ("--only", &self.only)] {
            if let Some(value) = value {
                words.extend([option, value]);
            }
        }
        words.extend(self.isolation.words());
        words.into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        choice: Choice,
    }

    fn words(line: &[&str]) -> Vec<String> {
        Line::try_parse_from([&["hearth"], line].concat()).unwrap().choice.words()
    }

    #[test]
    fn the_words_of_a_choice_are_the_same_choice() {
        for line in [
            &["--policy", "fair"][..],
            &["--policy", "light", "--pages", "none", "--only", "a.service"],
            &["--policy", "fair", "--planner", "none"],
            &["--pages-only", "--pages", "./mine.toml"],
            &[
                "--policy",
                "fair",
                "--cache-fair",
                "a.service",
                "--cache-fair",
                "/b",
                "--best-effort",
                "user:ada",
            ],
        ] {
            assert_eq!(words(line), line);
        }
        assert_eq!(words(&[]), ["--policy", "fair"]);
    }
}
