//! `hearth exec`: a program that follows the CPUs that it can get.

use crate::failure::{Failure, Outcome};
use clap::Args;
use hearth_follow::{ExecError, Options};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

pub const EXAMPLES: &str = "\
Examples:
  hearth exec -- ./stencil 20000 20000
  hearth exec -v -- python3 train.py

Exit codes: the program's own, 127 if it was not found, 126 if it could not be started; a signal that
ends it ends `hearth exec`, too.";

#[derive(Debug, Args)]
pub struct Arguments {
    /// Say what the program follows by, and what it was told
    #[arg(short, long)]
    verbose: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let options = Options { command: arguments.command.clone(), verbose: arguments.verbose };
    end_as(hearth_follow::exec(&options).map_err(refusal)?)
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

/// Ends as the program did: with its code, or by its signal, leaving no second core dump.
fn end_as(status: ExitStatus) -> Outcome {
    if let Some(signal) = status.signal() {
        hearth_follow::end_by(signal);
    }
    match status.code() {
        Some(0) => Ok(()),
        code => Err(Failure::Command(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))),
    }
}
