//! `hearth exec`: a program that follows the CPUs that it can get.

mod class;

use crate::values;
use clap::Args;
use hearth_command::failure::{Failure, Outcome};
use hearth_linux::daemon;
use hearth_share::follow::ExecError;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

pub const EXAMPLES: &str = "\
Examples:
  hearth exec -- ./stencil 20000 20000
  hearth exec -v --report -- python3 train.py
  hearth exec --gang -- mpirun ./solver     all its tasks run at the same time
  hearth exec --class best-effort -- make   what it costs cache-fair programs, it pays for

Exit codes: the program's own, 127 if it was not found, 126 if it could not be started; a signal that
ends it ends `hearth exec`, too.";

#[derive(Debug, Args)]
pub struct Arguments {
    /// Say how the program follows
    #[arg(short, long)]
    verbose: bool,
    /// Say at the end what it was told over time
    #[arg(long)]
    report: bool,
    /// Have all tasks of the program, and of those that it begins, run at the same time
    #[arg(long, conflicts_with = "set")]
    gang: bool,
    /// Give the program a processor set: CPUs of its own
    #[arg(long)]
    set: bool,
    /// With --set: the most CPUs that it is to have; an equal share of the machine if left out
    #[arg(long, value_name = "COUNT", requires = "set", value_parser = values::count)]
    cpus: Option<u32>,
    /// Give the program, and all that it begins, a class, by a cgroup of its own: whether its speed is not to
    /// depend on who shares a cache with it, or it is to pay for that
    #[arg(long, value_name = "CLASS", value_parser = class::parser())]
    class: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let say = |text: &str, well: bool| {
        if arguments.verbose || !well {
            anstream::eprintln!("hearth: {text}");
        }
    };
    let class = arguments.class.as_deref().map(|class| class::enter(class, arguments.set));
    let mut class = class.transpose()?.flatten();
    let begun = |pid| {
        class.iter_mut().for_each(class::leave);
        if arguments.gang || arguments.set {
            schedule_as_one(arguments, pid);
        }
    };
    let ended = hearth_share::follow::exec(&arguments.command, say, begun);
    // The signal that ended the program is about to end this process.
    drop(class);
    let ended = ended.map_err(refusal)?;
    if arguments.report {
        anstream::eprintln!("hearth: {} {}", ended.name, ended.told);
    }
    end_as(ended.status)
}

/// Has the daemon schedule a program as one. The program runs, too, where that cannot be.
fn schedule_as_one(arguments: &Arguments, pid: i32) {
    let cpus = arguments.cpus.map(|cpus| cpus as usize);
    match daemon::ask_program(&daemon::run_folder(), arguments.gang, cpus, &[pid]) {
        Ok(Some(_)) => {}
        Ok(None) => anstream::eprintln!(
            "hearth: gangs and sets are plans of a Hearth that runs (hearth start; sets also under hearth start \
             --no-scheduler); the program runs as others do"
        ),
        Err(error) => anstream::eprintln!("hearth: {error}; the program runs as others do"),
    }
}

fn refusal(error: ExecError) -> Failure {
    match &error {
        ExecError::Start { error: cause, .. } if cause.kind() == ErrorKind::NotFound => {
            Failure::Code(127, error.into())
        }
        ExecError::Start { .. } => Failure::Code(126, error.into()),
        ExecError::Wait(_) => Failure::failed(error),
    }
}

/// Ends as the program did: with its code, or by its signal.
fn end_as(status: ExitStatus) -> Outcome {
    if let Some(signal) = status.signal() {
        hearth_share::follow::end_by(signal);
    }
    match status.code() {
        Some(0) => Ok(()),
        code => Err(Failure::Command(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))),
    }
}
