//! From names on the command line to machines, policies, workloads and experiments.

use anyhow::anyhow;
use hearth_command::failure::Failure;
use hearth_command::names::{self, OR_FILE, PAGE_POLICY, POLICY, is_path, unknown};
use hearth_experiments::{Experiment, ExperimentError, Policies};
use hearth_machine::{Machine, MachineError, host, located};
use hearth_policy::pages::PagePolicy;
use hearth_policy::planners;
use hearth_workloads::WorkloadError;
use std::path::Path;

/// Kinds of things that come with Hearth and have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// What programs run on
    #[value(alias = "machine")]
    Machines,
    /// What the scheduler does
    #[value(alias = "policy")]
    Policies,
    /// When pages move between memory nodes
    #[value(alias = "page-policy")]
    PagePolicies,
    /// What plans while a scheduler runs
    #[value(alias = "planner")]
    Planners,
    /// The programs
    #[value(alias = "workload")]
    Workloads,
    /// Whose claims `hearth lab` checks
    #[value(alias = "experiment")]
    Experiments,
}

impl Kind {
    /// How its things are named.
    pub fn named(self) -> names::Kind {
        match self {
            Kind::Machines => MACHINE,
            Kind::Policies => POLICY,
            Kind::PagePolicies => PAGE_POLICY,
            Kind::Planners => PLANNER,
            Kind::Workloads => PROGRAM,
            Kind::Experiments => EXPERIMENT,
        }
    }
}

const MACHINE: names::Kind =
    names::Kind { word: "machine", names: machines, or_else: ", host for this one, or name a TOML file" };
const PLANNER: names::Kind = names::Kind { word: "planner", names: planner_names, or_else: "" };
const PROGRAM: names::Kind =
    names::Kind { word: "program", names: workloads, or_else: ", and join programs by +" };
const EXPERIMENT: names::Kind = names::Kind { word: "experiment", names: experiment_ids, or_else: OR_FILE };

/// The machines that come with Hearth.
pub fn machines() -> Vec<&'static str> {
    hearth_machine::presets().iter().map(|preset| preset.0).collect()
}

/// What a policy may have behind a `+`.
pub fn beside_policies() -> Vec<&'static str> {
    [(PAGE_POLICY.names)(), planner_names()].concat()
}

/// Everything that comes with Hearth and has a name.
pub fn everything() -> Vec<&'static str> {
    let kinds = [MACHINE, POLICY, PAGE_POLICY, PROGRAM, EXPERIMENT];
    kinds.iter().flat_map(|kind| (kind.names)()).collect()
}

/// What `emulate` can compare, but for commands that load a scheduler.
pub fn schedulers() -> Vec<String> {
    let own = (POLICY.names)().into_iter().map(|name| format!("hearth:{name}"));
    ["kernel", "kernel-cache"].map(str::to_owned).into_iter().chain(own).collect()
}

/// The programs, and the staggered workloads.
pub fn workloads() -> Vec<&'static str> {
    let staggered = hearth_workloads::Staggered::presets().iter().map(|preset| preset.0);
    hearth_workloads::list().iter().map(|workload| workload.name).chain(staggered).collect()
}

/// The papers' experiments.
pub fn experiment_ids() -> Vec<&'static str> {
    Experiment::presets().iter().map(|preset| preset.0).collect()
}

/// The name of the machine that this command runs on.
pub const HOST: &str = "host";

/// A machine by preset or file, or this host.
pub fn machine(name: &str) -> Result<Machine, Failure> {
    if name == HOST {
        return this_host();
    }
    Machine::load(name).map_err(|error| match error {
        MachineError::Unreadable(_) if !is_path(name) => unknown(MACHINE, name),
        error => Failure::input(error),
    })
}

/// This host, with notes of what was changed or assumed on standard error.
fn this_host() -> Result<Machine, Failure> {
    let made = host_machine()?;
    made.notes.iter().for_each(|note| eprintln!("note: {note}"));
    Ok(made.machine)
}

/// This host as a machine.
pub fn host_machine() -> Result<host::HostMachine, Failure> {
    let topology = host::read(Path::new("/")).map_err(Failure::input)?;
    topology.to_machine().map_err(Failure::input)
}

/// Policies by preset or file, with or without a page policy and a planner, each once. `planner` is that of
/// those that name none.
pub fn policies(names: &[String], planner: Option<&'static str>) -> Result<Vec<Policies>, Failure> {
    let load = |name: &String| {
        let parts = hearth_experiments::Names::from(name.as_str());
        Ok(Policies {
            policy: names::policy(parts.policy)?,
            pages: parts.pages.map(beside).transpose()?,
            planner: parts.planner.or(planner),
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

fn planner_names() -> Vec<&'static str> {
    planners::PLANNERS.iter().map(|kind| kind.name).collect()
}

/// The page policy behind a `+`. No planner has this name, but one could be meant.
fn beside(name: &str) -> Result<PagePolicy, Failure> {
    if is_path(name) || (PAGE_POLICY.names)().contains(&name) {
        return names::live_page_policy(name);
    }
    let all = planner_names();
    Err(Failure::Input(match located::nearest(name, &all) {
        Some(planner) => anyhow!("there is no planner called {name:?}; did you mean {planner}?"),
        None => anyhow!(
            "there is no page policy or planner called {name:?}; choose from {}, or the planners {}; or name a TOML file",
            names::live_page_policies().join(", "),
            all.join(", ")
        ),
    }))
}

/// A program or a staggered workload in a sentence; empty if there is none of this name.
pub fn describe_workload(name: &str) -> String {
    match (hearth_workloads::Description::of(name), hearth_workloads::Staggered::find(name)) {
        (Some(program), _) => program.description.to_owned(),
        (None, Ok(Some(staggered))) => staggered.description,
        _ => String::new(),
    }
}

/// Experiments by preset or file, each once; all presets if none is named.
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
pub fn experiment(name: &str) -> Result<Experiment, Failure> {
    Experiment::load(name).map_err(|error| match error {
        ExperimentError::Unreadable(_) if !is_path(name) => unknown(EXPERIMENT, name),
        error => Failure::input(error),
    })
}

/// Refuses a mix with an unknown program, or with one that has no CPU on the machine.
pub fn check_mix(mix: &str, machine: &Machine) -> Result<(), Failure> {
    let parts = hearth_workloads::mix(mix);
    let checked = parts.and_then(|parts| hearth_workloads::check_cpus(&parts, machine.cpus()));
    checked.map_err(|error| match error {
        WorkloadError::UnknownProgram { name } if !name.is_empty() => unknown(PROGRAM, &name),
        error => Failure::input(error),
    })
}
