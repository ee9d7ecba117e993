//! From names on the command line to machines, policies and workloads.

use crate::failure::Failure;
use anyhow::anyhow;
#[cfg(feature = "lab")]
use hearth_lab::{Experiment, ExperimentError, PLANNERS, Policies};
use hearth_machine::located;
#[cfg(feature = "lab")]
use hearth_machine::{Machine, MachineError};
use hearth_policy::pages::{PagePolicy, page_presets};
use hearth_policy::{Policy, PolicyError};
#[cfg(feature = "lab")]
use hearth_workloads::WorkloadError;
use std::path::Path;

/// Kinds of things that come with Hearth and have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// What programs run on
    #[cfg(feature = "lab")]
    #[value(alias = "machine")]
    Machines,
    /// What the scheduler does
    #[value(alias = "policy")]
    Policies,
    /// When pages move between memory nodes
    #[value(alias = "page-policy")]
    PagePolicies,
    /// The programs
    #[cfg(feature = "lab")]
    #[value(alias = "workload")]
    Workloads,
    /// Whose claims `hearth lab` checks
    #[cfg(feature = "lab")]
    #[value(alias = "experiment")]
    Experiments,
}

/// A machine by preset or file.
#[cfg(feature = "lab")]
pub fn machine(name: &str) -> Result<Machine, Failure> {
    Machine::load(name).map_err(|error| match error {
        MachineError::Unreadable(_) if !is_path(name) => unknown(Kind::Machines, name),
        error => Failure::input(error),
    })
}

/// A page policy by preset or file.
pub fn page_policy(name: &str) -> Result<PagePolicy, Failure> {
    PagePolicy::load(name).map_err(|error| match error {
        PolicyError::Unreadable(_) if !is_path(name) => unknown(Kind::PagePolicies, name),
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

fn live_page_policies() -> Vec<&'static str> {
    let is_live = |name: &str| PagePolicy::load(name).is_ok_and(|policy| policy.not_live().is_none());
    known(Kind::PagePolicies).into_iter().filter(|name| is_live(name)).collect()
}

/// Policies by preset or file, with or without a page policy and a planner, each once. `planner` is that of
/// those that name none.
#[cfg(feature = "lab")]
pub fn policies(names: &[String], planner: Option<&'static str>) -> Result<Vec<Policies>, Failure> {
    let load = |name: &String| {
        let names = hearth_lab::Names::from(name.as_str());
        Ok(Policies {
            policy: policy(names.policy)?,
            pages: names.pages.map(beside).transpose()?,
            planner: names.planner.or(planner),
        })
    };
    let policies: Vec<Policies> = names.iter().map(load).collect::<Result<_, Failure>>()?;
    for (index, policy) in policies.iter().enumerate() {
        if policies[..index].iter().any(|other| other.name() == policy.name()) {
            let name = policy.name();
            return Err(Failure::Input(anyhow!(
                "--policies has two policies called {name}; leave one out, or give it another `name`"
            )));
        }
    }
    Ok(policies)
}

/// The page policy behind a `+`. No planner has this name, but one could be meant.
#[cfg(feature = "lab")]
fn beside(name: &str) -> Result<PagePolicy, Failure> {
    if is_path(name) || known(Kind::PagePolicies).contains(&name) {
        return live_page_policy(name);
    }
    Err(Failure::Input(match located::nearest(name, &PLANNERS) {
        Some(planner) => anyhow!("there is no planner called {name:?}; did you mean {planner}?"),
        None => anyhow!(
            "there is no page policy or planner called {name:?}; choose from {}, or the planners {}; or name a TOML file",
            live_page_policies().join(", "),
            PLANNERS.join(", ")
        ),
    }))
}

/// A program or a staggered workload in a sentence; empty if there is none of this name.
#[cfg(feature = "lab")]
pub fn describe_workload(name: &str) -> String {
    match (hearth_workloads::Description::of(name), hearth_workloads::Staggered::find(name)) {
        (Some(program), _) => program.description.to_owned(),
        (None, Ok(Some(staggered))) => staggered.description,
        _ => String::new(),
    }
}

/// A policy by preset or file.
pub fn policy(name: &str) -> Result<Policy, Failure> {
    Policy::load(name).map_err(|error| match error {
        PolicyError::Unreadable(_) if !is_path(name) => unknown(Kind::Policies, name),
        error => Failure::input(error),
    })
}

/// Experiments by preset or file, each once; all presets if none is named.
#[cfg(feature = "lab")]
pub fn experiments(names: &[String]) -> Result<Vec<Experiment>, Failure> {
    let presets = || Experiment::presets().iter().map(|preset| experiment(preset.0)).collect();
    let experiments: Vec<Experiment> = match names {
        [] => presets(),
        names => names.iter().map(|name| experiment(name)).collect::<Result<_, _>>(),
    }?;
    for (index, experiment) in experiments.iter().enumerate() {
        if experiments[..index].iter().any(|other| other.id == experiment.id) {
            return Err(Failure::Input(anyhow!("experiment {} is named twice; name it once", experiment.id)));
        }
    }
    Ok(experiments)
}

/// An experiment by preset or file.
#[cfg(feature = "lab")]
pub fn experiment(name: &str) -> Result<Experiment, Failure> {
    Experiment::load(name).map_err(|error| match error {
        ExperimentError::Unreadable(_) if !is_path(name) => unknown(Kind::Experiments, name),
        error => Failure::input(error),
    })
}

/// Refuses a mix with an unknown program, or with one that has no CPU on the machine.
#[cfg(feature = "lab")]
pub fn check_mix(mix: &str, machine: &Machine) -> Result<(), Failure> {
    let parts = hearth_workloads::mix(mix);
    let checked = parts.and_then(|parts| hearth_workloads::check_cpus(&parts, machine.cpus()));
    checked.map_err(|error| match error {
        WorkloadError::UnknownProgram { name } if !name.is_empty() => unknown(Kind::Workloads, &name),
        error => Failure::input(error),
    })
}

/// The word for no planner at all.
pub const NO_PLANNER: &str = "none";

/// The words for one of these planners, or for none.
pub fn planner_names(planners: &[&'static str]) -> clap::builder::PossibleValuesParser {
    [NO_PLANNER].iter().chain(planners).copied().collect::<Vec<_>>().into()
}

fn is_path(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

/// The names of a kind.
pub fn known(kind: Kind) -> Vec<&'static str> {
    match kind {
        #[cfg(feature = "lab")]
        Kind::Machines => hearth_machine::presets().iter().map(|preset| preset.0).collect(),
        Kind::Policies => hearth_policy::presets().iter().map(|preset| preset.0).collect(),
        Kind::PagePolicies => page_presets().iter().map(|preset| preset.0).collect(),
        #[cfg(feature = "lab")]
        Kind::Workloads => {
            let staggered = hearth_workloads::Staggered::presets().iter().map(|preset| preset.0);
            hearth_workloads::list().iter().map(|workload| workload.name).chain(staggered).collect()
        }
        #[cfg(feature = "lab")]
        Kind::Experiments => Experiment::presets().iter().map(|preset| preset.0).collect(),
    }
}

/// The error for a name that is not known: names the nearest one, or all.
pub fn unknown(kind: Kind, name: &str) -> Failure {
    let known = known(kind);
    let mend = match located::nearest(name, &known) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("choose from {}{}", known.join(", "), or_file(kind)),
    };
    Failure::Input(anyhow!("there is no {} called {name:?}; {mend}", singular(kind)))
}

fn or_file(kind: Kind) -> &'static str {
    match kind {
        #[cfg(feature = "lab")]
        Kind::Workloads => ", and join programs by +",
        _ => ", or name a TOML file",
    }
}

fn singular(kind: Kind) -> &'static str {
    match kind {
        #[cfg(feature = "lab")]
        Kind::Machines => "machine",
        Kind::Policies => "policy",
        Kind::PagePolicies => "page policy",
        #[cfg(feature = "lab")]
        Kind::Workloads => "program",
        #[cfg(feature = "lab")]
        Kind::Experiments => "experiment",
    }
}
