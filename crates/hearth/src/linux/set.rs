//! `hearth set`: processor sets, and gangs, as the daemon schedules them.

use super::require_process;
use super::start::{failure, none_runs};
use crate::values;
use anyhow::anyhow;
use clap::{Args, Subcommand};
use hearth_command::failure::{Failure, Outcome};
use hearth_command::output;
use hearth_command::table::{number, table};
use hearth_linux::ProgramStatus;
use hearth_linux::daemon;
use hearth_machine::list::show_list;
use serde_json::json;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

pub const EXAMPLES: &str = "\
Examples:
  hearth set exec -- ./ocean          a program on CPUs of its own, for as long as it runs
  hearth set exec --cpus 4 -- ./ocean the same, on four CPUs at most
  hearth set create --cpus 4          a set that stays; prints its number
  hearth set bind 1 4242              process 4242, and all that it begins, have set 1
  hearth set list                     sets and gangs, with the CPUs that they have now
  hearth set destroy 1                its processes have the CPUs that others have

The machine is shared equally between the sets; everybody else has a set as large as its load. Sets
change as programs come and go. They are plans of a Hearth that runs: as the scheduler (hearth start), or
beside the kernel's own (hearth start --no-scheduler), where each set is a cgroup with a cpuset.";

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Makes a set without processes, and prints its number
    Create(Most),
    /// Lists sets and gangs
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Binds processes, and all that they begin, to a set
    Bind {
        /// The set's number
        #[arg(value_parser = values::count)]
        id: u32,
        /// The processes
        #[arg(required = true, value_parser = values::pid)]
        pids: Vec<i32>,
    },
    /// Runs a program in a set of its own
    Exec {
        #[command(flatten)]
        most: Most,
        /// The program and its arguments
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Ends a set: its processes have the CPUs that others have
    Destroy {
        /// The set's number
        #[arg(value_parser = values::count)]
        id: u32,
    },
}

#[derive(Debug, Args)]
struct Most {
    /// The most CPUs that it is to have; an equal share of the machine if left out
    #[arg(long, value_name = "COUNT", value_parser = values::count)]
    cpus: Option<u32>,
}

impl Most {
    fn cpus(&self) -> Option<usize> {
        self.cpus.map(|cpus| cpus as usize)
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    let folder = daemon::run_folder();
    match &arguments.action {
        Action::Create(most) => {
            let id = daemon::ask_program(&folder, false, most.cpus(), &[]).map_err(failure)?;
            output::print(&format!("{}\n", id.ok_or_else(none_runs)?))
        }
        Action::List { json } => list(&folder, *json),
        Action::Bind { id, pids } => {
            pids.iter().try_for_each(|pid| require_process(*pid))?;
            daemon::ask_bind(&folder, *id, pids).map_err(failure)?.ok_or_else(none_runs)
        }
        Action::Exec { most, command } => exec(&folder, most.cpus(), command),
        Action::Destroy { id } => daemon::ask_forget(&folder, *id).map_err(failure)?.ok_or_else(none_runs),
    }
}

/// Becomes the program, which keeps the number of this process. It runs, too, where there is no set for it.
fn exec(folder: &Path, cpus: Option<usize>, command: &[OsString]) -> Outcome {
    let own = std::process::id() as i32;
    match daemon::ask_program(folder, false, cpus, &[own]) {
        Ok(Some(_)) => {}
        Ok(None) => anstream::eprintln!("Hearth does not run here; the program runs without a set"),
        Err(error) => anstream::eprintln!("{error}; the program runs without a set"),
    }
    let error = Command::new(&command[0]).args(&command[1..]).exec();
    let code = if error.kind() == ErrorKind::NotFound { 127 } else { 126 };
    Err(Failure::Code(code, anyhow!("cannot run {}: {error}", command[0].to_string_lossy())))
}

fn list(folder: &Path, json: bool) -> Outcome {
    let programs = daemon::ask_programs(folder).map_err(failure)?.ok_or_else(none_runs)?;
    if json {
        return output::print_json(&json!({ "programs": programs }));
    }
    output::print(&text(&programs))
}

fn text(programs: &[ProgramStatus]) -> String {
    if programs.is_empty() {
        return "No set and no gang\n".into();
    }
    let mut table = table(&["", "CPUs", "Processes", "Number", "Tasks"], 3);
    for program in programs {
        let what = match (program.is_gang, program.rows.len()) {
            (false, _) => "set".to_owned(),
            (true, 0) => "gang".to_owned(),
            (true, _) => format!("gang, row {}", show_list(&program.rows)),
        };
        let processes: Vec<usize> =
            program.processes.iter().filter_map(|pid| usize::try_from(*pid).ok()).collect();
        table.add_row(vec![
            what.into(),
            show_list(&program.cpus).into(),
            show_list(&processes).into(),
            number(program.id.to_string()),
            number(program.tasks.to_string()),
        ]);
    }
    let shared = programs.iter().filter_map(|program| {
        let why = program.shared.as_ref()?;
        Some(format!("Others may run on the CPUs of set {}, too: {why}\n", program.id))
    });
    format!("{table}\n{}", shared.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_and_gangs_are_listed_with_what_they_have() {
        let set = ProgramStatus {
            id: 1,
            is_gang: false,
            most_cpus: Some(4),
            processes: vec![70, 71],
            name: "ocean".into(),
            tasks: 9,
            cpus: vec![0, 1, 2, 3],
            rows: Vec::new(),
            shared: Some("no CPU is left for it alone".into()),
        };
        let gang = ProgramStatus {
            id: 2,
            is_gang: true,
            cpus: vec![4, 5],
            rows: vec![0, 1],
            shared: None,
            ..set.clone()
        };
        let text = text(&[set, gang]);
        assert!(text.ends_with("Others may run on the CPUs of set 1, too: no CPU is left for it alone\n"));
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[3], ["set", "0-3", "70-71", "1", "9"]);
        assert_eq!(lines[4], ["gang,", "row", "0-1", "4-5", "70-71", "2", "9"]);
        assert_eq!(super::text(&[]), "No set and no gang\n");
    }
}
