//! `hearth exec`: a program that follows the CPUs that it can get.

use crate::failure::{Failure, Outcome};
use clap::Args;
use hearth_follow::ExecError;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

pub const EXAMPLES: &str = "\
Examples:
  hearth exec -- ./stencil 20000 20000
  hearth exec -v --report -- python3 train.py

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
    let ended = hearth_follow::exec(&arguments.command, say).map_err(refusal)?;
    if arguments.report {
        anstream::eprintln!("hearth: {} {}", ended.name, ended.told);
    }
    end_as(ended.status)
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
        hearth_follow::end_by(signal);
    }
    match status.code() {
        Some(0) => Ok(()),
        code => Err(Failure::Command(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))),
    }
}
