//! `hearth show`: one thing that comes with Hearth, or a file of the user's, in full.

use crate::names::{HOST, Kind, everything, host_machine, machine};
use anyhow::anyhow;
use clap::Args;
use hearth_command::complete;
use hearth_command::failure::{Failure, Outcome};
use hearth_command::names::{is_path, unknown};
use hearth_command::output;
use hearth_experiments::Experiment;
use hearth_host::moves::{self, Moves};
use hearth_machine::{Machine, MoveCosts, host, located};
use hearth_policy::Policy;
use hearth_policy::pages::PagePolicy;
use hearth_workloads::Staggered;
use serde_json::json;
use std::path::Path;

#[derive(Debug, Args)]
pub struct Arguments {
    /// What it is
    #[arg(value_enum)]
    kind: ShowKind,
    /// Its name, as `hearth list` gives it, or a file of yours; `host` is the machine that you are on, of which costs are
    /// shown if no other is named
    #[arg(default_value_if("kind", "costs", HOST), add = complete::names(everything))]
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ShowKind {
    /// As TOML, to be copied and changed
    #[value(alias = "machines")]
    Machine,
    /// As TOML, to be copied and changed
    #[value(alias = "policies")]
    Policy,
    /// As TOML, to be copied and changed
    #[value(alias = "page-policies")]
    PagePolicy,
    /// What a move costs on a machine, by which tasks are moved
    Costs,
    /// A program: what it does, how real it is, where it comes from; a staggered workload: as TOML
    #[value(alias = "workloads")]
    Workload,
    /// As TOML, to be copied and changed
    #[value(alias = "experiments")]
    Experiment,
}

impl ShowKind {
    fn kind(self) -> Kind {
        match self {
            ShowKind::Machine | ShowKind::Costs => Kind::Machines,
            ShowKind::Policy => Kind::Policies,
            ShowKind::PagePolicy => Kind::PagePolicies,
            ShowKind::Workload => Kind::Workloads,
            ShowKind::Experiment => Kind::Experiments,
        }
    }

    fn word(self) -> &'static str {
        match self {
            ShowKind::Machine => "machine",
            ShowKind::Costs => "costs",
            ShowKind::Policy => "policy",
            ShowKind::PagePolicy => "page-policy",
            ShowKind::Workload => "workload",
            ShowKind::Experiment => "experiment",
        }
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    let kind = arguments.kind;
    let Some(name) = arguments.name.as_deref() else {
        let kinds = kind.kind().named();
        return Err(Failure::Input(anyhow!(
            "which {}? There are {}",
            kinds.word,
            (kinds.names)().join(", ")
        )));
    };
    if kind == ShowKind::Costs {
        return costs(name, arguments.json);
    }
    let text = match kind {
        ShowKind::Machine if name == HOST => host_machine()?.to_toml(),
        _ if is_path(name) => file(kind, name)?,
        _ => text(kind, name).ok_or_else(|| unknown(kind.kind().named(), name))?,
    };
    if arguments.json {
        return output::print_json(&json!({ "kind": kind.word(), "name": name, "text": text }));
    }
    output::print(&text)
}

/// What comes with Hearth and is a file of its own.
fn presets(kind: ShowKind) -> &'static [(&'static str, &'static str)] {
    match kind {
        ShowKind::Machine | ShowKind::Costs => hearth_machine::presets(),
        ShowKind::Policy => hearth_policy::presets(),
        ShowKind::PagePolicy => hearth_policy::pages::page_presets(),
        ShowKind::Workload => Staggered::presets(),
        ShowKind::Experiment => Experiment::presets(),
    }
}

fn text(kind: ShowKind, name: &str) -> Option<String> {
    let found = presets(kind).iter().find(|(preset, _)| *preset == name);
    let text = found.map(|(_, text)| (*text).to_owned());
    if kind == ShowKind::Workload { text.or_else(|| workload(name)) } else { text }
}

/// A file of the user's, if it is one of this kind.
fn file(kind: ShowKind, path: &str) -> Result<String, Failure> {
    let text = located::read_file(path, kind.word(), presets(kind)).map_err(Failure::input)?;
    match kind {
        ShowKind::Machine | ShowKind::Costs => Machine::parse(&text, path).map(drop).map_err(Failure::input),
        ShowKind::Policy => Policy::parse(&text, path).map(drop).map_err(Failure::input),
        ShowKind::PagePolicy => PagePolicy::parse(&text, path).map(drop).map_err(Failure::input),
        ShowKind::Workload => Staggered::parse(&text, path).map(drop).map_err(Failure::input),
        ShowKind::Experiment => Experiment::parse(&text, path).map(drop).map_err(Failure::input),
    }?;
    Ok(text)
}

/// What moves cost: of this machine measured as `hearth start` does, of others as their caches and latencies have it.
fn costs(name: &str, is_json: bool) -> Outcome {
    let (Moves { costs, is_measured }, domains, nodes) = if name == HOST {
        let host = host::read(Path::new("/")).map_err(|error| Failure::Failed(error.into()))?;
        (moves::measure(&host), host.domains().len(), host.nodes.len())
    } else {
        let machine = machine(name)?;
        let domains = machine.cpus() / machine.domain_cpus();
        (Moves { costs: machine.move_costs(), is_measured: [false; 3] }, domains, machine.nodes.len())
    };
    if is_json {
        let MoveCosts { cpu_ns, cache_ns, node_ns } = costs;
        return output::print_json(&json!({
            "machine": name, "cpu_ns": cpu_ns, "cache_ns": cache_ns, "node_ns": node_ns, "is_measured": is_measured,
        }));
    }
    let there_are = costs.of(domains, nodes).into_iter().zip(is_measured);
    let lines = there_are.filter_map(|(there, is_measured)| {
        let (place, ns) = there?;
        let how = if is_measured { "measured" } else { "by sizes and latencies" };
        Some(format!("to {place:<13} {:>7.3} ms  {how}\n", ns as f64 / 1e6))
    });
    output::print(&format!("A move costs at most, on {name}:\n{}", lines.collect::<String>()))
}

fn workload(name: &str) -> Option<String> {
    let workload = hearth_workloads::Description::of(name)?;
    let kind = match workload.kind {
        hearth_workloads::Kind::Real => "real: its references are those that the computation makes",
        hearth_workloads::Kind::Synthetic => "synthetic: some of its references are drawn at random",
    };
    let (description, source) = (workload.description, workload.source);
    let mut text = format!("{}: {description}\nkind: {kind}\nsource: {source}\n", workload.name);
    for parameter in workload.parameters() {
        let (name, description, range) = (parameter.name, parameter.description, &parameter.range);
        let (default, low, high) = (parameter.default, range.start(), range.end());
        text += &format!("{name}: {description}; {low} to {high}, or else {default}\n");
    }
    Some(text)
}
