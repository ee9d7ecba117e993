//! From names on the command line to policies.

use crate::failure::Failure;
use anyhow::anyhow;
use clap::builder::PossibleValue;
use hearth_machine::located;
use hearth_policy::pages::{PagePolicy, page_presets};
use hearth_policy::planners;
use hearth_policy::{Policy, PolicyError};
use std::path::Path;

/// A kind of things that come with Hearth and have names.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// One of them.
    pub word: &'static str,
    /// The names.
    pub names: fn() -> Vec<&'static str>,
    /// What else can be named, behind a list of the names.
    pub or_else: &'static str,
}

/// What else can be named of most kinds.
pub const OR_FILE: &str = ", or name a TOML file";

/// What the scheduler does.
pub const POLICY: Kind = Kind { word: "policy", names: policies, or_else: OR_FILE };

/// When pages move between memory nodes.
pub const PAGE_POLICY: Kind = Kind { word: "page policy", names: page_policies, or_else: OR_FILE };

fn policies() -> Vec<&'static str> {
    hearth_policy::presets().iter().map(|preset| preset.0).collect()
}

fn page_policies() -> Vec<&'static str> {
    page_presets().iter().map(|preset| preset.0).collect()
}

/// A policy by preset or file.
pub fn policy(name: &str) -> Result<Policy, Failure> {
    Policy::load(name).map_err(|error| match error {
        PolicyError::Unreadable(_) if !is_path(name) => unknown(POLICY, name),
        error => Failure::input(error),
    })
}

/// A policy by preset or file, for a real kernel.
pub fn live_policy(name: &str) -> Result<Policy, Failure> {
    let policy = policy(name)?;
    match policy.not_live() {
        Some(why) => Err(Failure::Input(anyhow!("policy {}: {why}; choose another policy", policy.name))),
        None => Ok(policy),
    }
}

/// The presets that a real kernel can have.
pub fn live_policies() -> Vec<&'static str> {
    let is_live = |name: &str| Policy::load(name).is_ok_and(|policy| policy.not_live().is_none());
    policies().into_iter().filter(|name| is_live(name)).collect()
}

/// A page policy by preset or file.
pub fn page_policy(name: &str) -> Result<PagePolicy, Failure> {
    PagePolicy::load(name).map_err(|error| match error {
        PolicyError::Unreadable(_) if !is_path(name) => unknown(PAGE_POLICY, name),
        error => Failure::input(error),
    })
}

/// A page policy by preset or file, for pages that move while programs run.
pub fn live_page_policy(name: &str) -> Result<PagePolicy, Failure> {
    let policy = page_policy(name)?;
    match policy.not_live() {
        Some(why) => Err(Failure::Input(anyhow!(
            "page policy {}: {why}; while programs run, choose from {}, or name a TOML file with another rule",
            policy.name,
            live_page_policies().join(", ")
        ))),
        None => Ok(policy),
    }
}

/// The presets among them.
pub fn live_page_policies() -> Vec<&'static str> {
    let is_live = |name: &str| PagePolicy::load(name).is_ok_and(|policy| policy.not_live().is_none());
    page_policies().into_iter().filter(|name| is_live(name)).collect()
}

/// The word for no planner at all.
pub const NO_PLANNER: &str = "none";

/// The words for one of these planners, or for none, and what it does.
pub fn planner_names(
    planners: impl IntoIterator<Item = &'static planners::Kind>,
) -> clap::builder::PossibleValuesParser {
    let none = PossibleValue::new(NO_PLANNER).help("nobody plans");
    let all = planners.into_iter().map(|kind| PossibleValue::new(kind.name).help(kind.does));
    [none].into_iter().chain(all).collect::<Vec<_>>().into()
}

/// Whether a word names a file.
pub fn is_path(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

/// The error for a name that is not known: names the nearest one, or all.
pub fn unknown(kind: Kind, name: &str) -> Failure {
    let known = (kind.names)();
    let mend = match located::nearest(name, &known) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("choose from {}{}", known.join(", "), kind.or_else),
    };
    Failure::Input(anyhow!("there is no {} called {name:?}; {mend}", kind.word))
}
