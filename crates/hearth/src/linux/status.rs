//! `hearth status`: who schedules this machine.

use super::start::failure;
use crate::failure::Outcome;
use crate::output;
use clap::Args;
use hearth_linux::{daemon, kernel};
use serde_json::json;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let status = daemon::ask_status(&daemon::run_folder()).map_err(failure)?;
    if arguments.json {
        return output::print_json(&json!({
            "kernel": kernel::release(),
            "sched_ext": kernel::sched_ext_state(),
            "scheduler": kernel::loaded_scheduler(),
            "hearth": status,
        }));
    }
    let Some(status) = status else {
        let loaded = match (kernel::sched_ext_state(), kernel::loaded_scheduler()) {
            (Some(_), Some(name)) => format!("the sched_ext scheduler {name}"),
            (Some(_), None) => "the kernel's own scheduler".to_owned(),
            (None, _) => "the kernel's own scheduler; this kernel cannot load another".to_owned(),
        };
        return output::print(&format!("Hearth does not run: this machine has {loaded}\n"));
    };
    let mut text = format!(
        "Hearth has scheduled this machine for {} (policy {}, process {})\n\n\
         {:>4} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
        humantime::format_duration(std::time::Duration::from_secs(status.up_s as u64)),
        status.policy,
        status.pid,
        "cpu",
        "kept",
        "own",
        "domain",
        "foreign",
        "direct",
        "preempted",
        "idle",
    );
    for cpu in &status.cpus {
        let s = &cpu.stats;
        text += &format!(
            "{:>4} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
            cpu.cpu, s.kept, s.own, s.domain, s.foreign, s.direct, s.preempted, s.idle
        );
    }
    output::print(&text)
}
