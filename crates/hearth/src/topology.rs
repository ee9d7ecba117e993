//! `hearth topology`: this host.

use clap::Args;
use hearth_command::failure::{Failure, Outcome};
use hearth_command::output;
use hearth_machine::host::{self, HostTopology};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Print the host as a machine that `compare --machine FILE` accepts
    #[arg(long, conflicts_with = "json")]
    toml: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Read another host's copy of /sys and /proc below this folder
    #[arg(long, value_name = "FOLDER", default_value = "/")]
    root: PathBuf,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let topology = host::read(&arguments.root).map_err(Failure::input)?;
    if arguments.json {
        return output::print_json(&to_json(&topology));
    }
    if arguments.toml {
        return output::print(&topology.to_machine().map_err(Failure::input)?.to_toml());
    }
    output::print(&topology.tree())
}

fn to_json(topology: &HostTopology) -> Value {
    let cpu = |cpu: &host::HostCpu| json!({ "id": cpu.id, "core_cpus": cpu.core_cpus, "package": cpu.package, "clock_hz": cpu.clock_hz });
    let node = |node: &host::HostNode| json!({ "id": node.id, "cpus": node.cpus, "memory_bytes": node.memory_bytes, "distances": node.distances });
    let cache = |cache: &host::HostCache| {
        json!({
            "name": cache.name(), "level": cache.level, "size_bytes": cache.size_bytes,
            "ways": cache.ways, "line_bytes": cache.line_bytes, "cpus": cache.cpus,
        })
    };
    json!({
        "model": topology.model,
        "page_bytes": topology.page_bytes,
        "cpus": topology.cpus.iter().map(cpu).collect::<Vec<_>>(),
        "offline": topology.offline,
        "nodes": topology.nodes.iter().map(node).collect::<Vec<_>>(),
        "caches": topology.caches.iter().map(cache).collect::<Vec<_>>(),
        "notes": topology.notes,
    })
}
