//! `hearth show`: one thing that comes with Hearth, in full.

use crate::names::Kind;
use clap::Args;
use hearth_command::failure::Outcome;
use hearth_command::names::unknown;
use hearth_command::output;
use serde_json::json;

#[derive(Debug, Args)]
pub struct Arguments {
    /// What it is
    #[arg(value_enum)]
    kind: ShowKind,
    /// Its name, as `hearth list` gives it
    name: String,
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
            ShowKind::Machine => Kind::Machines,
            ShowKind::Policy => Kind::Policies,
            ShowKind::PagePolicy => Kind::PagePolicies,
            ShowKind::Workload => Kind::Workloads,
            ShowKind::Experiment => Kind::Experiments,
        }
    }

    fn word(self) -> &'static str {
        match self {
            ShowKind::Machine => "machine",
            ShowKind::Policy => "policy",
            ShowKind::PagePolicy => "page-policy",
            ShowKind::Workload => "workload",
            ShowKind::Experiment => "experiment",
        }
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    let text = text(arguments.kind, &arguments.name);
    let text = text.ok_or_else(|| unknown(arguments.kind.kind().named(), &arguments.name))?;
    if arguments.json {
        let kind = arguments.kind.word();
        return output::print_json(&json!({ "kind": kind, "name": arguments.name, "text": text }));
    }
    output::print(&text)
}

fn text(kind: ShowKind, name: &str) -> Option<String> {
    let preset = |presets: &[(&str, &str)]| {
        let found = presets.iter().find(|(preset, _)| *preset == name);
        found.map(|(_, text)| (*text).to_owned())
    };
    match kind {
        ShowKind::Machine => preset(hearth_machine::presets()),
        ShowKind::Policy => preset(hearth_policy::presets()),
        ShowKind::PagePolicy => preset(hearth_policy::pages::page_presets()),
        ShowKind::Workload => preset(hearth_workloads::Staggered::presets()).or_else(|| workload(name)),
        ShowKind::Experiment => preset(hearth_experiments::Experiment::presets()),
    }
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
