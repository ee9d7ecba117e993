//! `hearth status`: who schedules this machine.

use super::start::{ending, failure};
use super::{isolation, pages, plan};
use clap::Args;
use hearth_command::failure::Outcome;
use hearth_command::output;
use hearth_host::kernel;
use hearth_linux::FragmentsStatus;
use hearth_linux::daemon::{self, Status};
use hearth_linux::ending::Ending;
use serde_json::json;
use std::time::{Duration, UNIX_EPOCH};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let status = daemon::ask_status(&daemon::run_folder()).map_err(failure)?;
    let ends = daemon::holder(&daemon::run_folder()).filter(|holder| holder.ending_for.is_some());
    let last = Ending::last(&daemon::state_folder()).filter(|_| status.is_none());
    if arguments.json {
        return output::print_json(&json!({
            "kernel": kernel::release(),
            "sched_ext": kernel::sched_ext_state(),
            "scheduler": kernel::loaded_scheduler(),
            "hearth": status,
            "ending": ends,
            "last_ending": last,
        }));
    }
    let Some(status) = status else {
        let loaded = match (kernel::sched_ext_state(), kernel::loaded_scheduler()) {
            (Some(_), Some(name)) => format!("the sched_ext scheduler {name}"),
            (Some(_), None) => "the kernel's own scheduler".to_owned(),
            (None, _) => "the kernel's own scheduler; this kernel cannot load another".to_owned(),
        };
        let state = ends.map_or("Hearth does not run".to_owned(), |holder| ending(&holder));
        let last = last.map(|last| ended(&last)).unwrap_or_default();
        return output::print(&format!("{state}: this machine has {loaded}\n{last}"));
    };
    let what = status.only.as_ref().map_or("this machine".to_owned(), |only| only.display().to_string());
    let up = humantime::format_duration(Duration::from_secs(status.up_s as u64));
    let pages = pages::of(&status).as_ref().map(pages::summary).unwrap_or_default();
    let plan = status.planner.as_ref().map(plan::summary).unwrap_or_default()
        + &plan::programs(&status.programs)
        + &status.fragments.as_ref().map(fragments).unwrap_or_default()
        + &status.isolation.as_ref().map(isolation::text).unwrap_or_default();
    let notes = notes(&status);
    let Some(policy) = &status.policy else {
        return output::print(&format!(
            "Hearth has run for {up} (process {}); the kernel's own scheduler schedules {what}\n{notes}{plan}{pages}",
            status.pid
        ));
    };
    let mut text = format!(
        "Hearth has scheduled {what} for {up} (policy {policy}, process {})\n{notes}{plan}{pages}\n\
         {:>4} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>6}\n",
        status.pid, "cpu", "kept", "own", "domain", "foreign", "direct", "preempted", "idle", "late",
    );
    for cpu in &status.cpus {
        let s = &cpu.stats;
        text += &format!(
            "{:>4} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>6}\n",
            cpu.cpu, s.kept, s.own, s.domain, s.foreign, s.direct, s.preempted, s.idle, s.late
        );
    }
    output::print(&(text + &rare(&status)))
}

/// What happens too seldom for a column of each CPU's, and what waited beside idle CPUs.
fn rare(status: &Status) -> String {
    let (near, far) = (status.sum(|cpu| cpu.stayed_near), status.sum(|cpu| cpu.stayed_far));
    let others = [
        ("taken from a CPU where more wait", status.sum(|cpu| cpu.strays)),
        ("run in their gang's time", status.sum(|cpu| cpu.members)),
        ("taken from a busy fragment's home", status.sum(|cpu| cpu.fragments)),
    ];
    let mut text: String = others
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("Tasks {what}: {count}\n"))
        .collect();
    if near + far > 0 {
        let ms = status.sum(|cpu| cpu.stayed_ns) as f64 / 1e6;
        text += &format!(
            "Waits beside an idle CPU that cost less than a move: {near} in the same cache, {far} beyond; {ms:.1} ms\n"
        );
    }
    text
}

/// When it ends, and how often the kernel was wrong.
fn notes(status: &Status) -> String {
    let mut text = String::new();
    if let Some(left_s) = status.left_s {
        let left = humantime::format_duration(Duration::from_secs(left_s.ceil() as u64));
        text += &format!("It ends in {left} (--for)\n");
    }
    text += &match status.false_waits {
        0 => String::new(),
        1 => "Loaded again once, for the kernel counted a wait that did not happen\n".to_owned(),
        times => format!("Loaded again {times} times, for the kernel counted waits that did not happen\n"),
    };
    text
}

fn fragments(status: &FragmentsStatus) -> String {
    let FragmentsStatus { fragments, most, tasks, refused } = status;
    let refused = match refused {
        0 => String::new(),
        _ => format!("; {refused} declarations found no place (there are {most})"),
    };
    format!("Fragments: {fragments}, declared by {tasks} tasks{refused}\n")
}

fn ended(ending: &Ending) -> String {
    let at = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(ending.at_unix_s));
    format!("The kernel ended the last one at {at}: {ending}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_says_when_it_ends_and_how_often_the_kernel_was_wrong() {
        let status = |left: &str, times: u64| -> Status {
            serde_json::from_str(&format!(
                r#"{{"schema":1,"version":"1","pid":1,"policy":"fair","only":null,"up_s":1.0,"cpus":[]{left},
                    "false_waits":{times}}}"#
            ))
            .unwrap()
        };
        assert_eq!(notes(&status("", 0)), "");
        assert_eq!(notes(&status(r#","left_s":594.2"#, 0)), "It ends in 9m 55s (--for)\n");
        assert!(notes(&status("", 2)).starts_with("Loaded again 2 times"));
    }
}
