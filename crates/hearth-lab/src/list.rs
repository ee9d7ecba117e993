//! `hearth list`: what comes with Hearth.

use crate::names;
use crate::names::Kind;
use clap::Args;
use hearth_command::failure::{Failure, Outcome};
use hearth_command::names::page_policy;
use hearth_command::output;
use hearth_policy::planners;
use serde_json::json;

#[derive(Debug, Args)]
pub struct Arguments {
    /// What to list
    #[arg(value_enum)]
    kind: Kind,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let entries = entries(arguments.kind)?;
    if arguments.json {
        let list: Vec<_> =
            entries.iter().map(|(name, text)| json!({ "name": name, "description": text })).collect();
        return output::print_json(&json!({ key(arguments.kind): list }));
    }
    let width = entries.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let lines = entries.iter().map(|(name, text)| format!("{name:width$}  {text}\n"));
    output::print(&lines.collect::<String>())
}

fn key(kind: Kind) -> &'static str {
    match kind {
        Kind::Machines => "machines",
        Kind::Policies => "policies",
        Kind::PagePolicies => "page_policies",
        Kind::Planners => "planners",
        Kind::Workloads => "workloads",
        Kind::Experiments => "experiments",
    }
}

/// Name and description of everything of a kind.
fn entries(kind: Kind) -> Result<Vec<(String, String)>, Failure> {
    let described = |name: &str| -> Result<String, Failure> {
        Ok(match kind {
            Kind::Machines => names::machine(name)?.description,
            Kind::Policies => names::policies(&[name.to_owned()], None)?.remove(0).description(),
            Kind::PagePolicies => page_policy(name)?.description,
            Kind::Planners => planners::kind(name).map_or_else(String::new, |kind| kind.does.to_owned()),
            Kind::Workloads => names::describe_workload(name),
            Kind::Experiments => names::experiment(name)?.title,
        })
    };
    (kind.named().names)().into_iter().map(|name| Ok((name.to_owned(), described(name)?))).collect()
}
