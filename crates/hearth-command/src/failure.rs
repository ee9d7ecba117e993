//! How the command ends when it does not end well.

use std::fmt::Display;
use std::process::ExitCode;

/// Why the command ends with another code than 0.
#[derive(Debug)]
pub enum Failure {
    /// The user's input is wrong: exit code 2.
    Input(anyhow::Error),
    /// Something did not work: exit code 1.
    Failed(anyhow::Error),
    /// A claim does not hold, and the user wanted to know: exit code 3.
    Refuted,
    /// What has an exit code of its own.
    Code(u8, anyhow::Error),
    /// A command that was run ended with this code, having said itself what is wrong.
    Command(u8),
    /// Ctrl-C: exit code 130.
    Interrupted,
    /// The reader of standard output has gone, which is its right: no message, exit code 0.
    NoReader,
}

/// What every command returns.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// Wrong input.
    pub fn input(error: impl Into<anyhow::Error>) -> Self {
        Failure::Input(error.into())
    }

    /// Something that did not work.
    pub fn failed(error: impl Into<anyhow::Error>) -> Self {
        Failure::Failed(error.into())
    }

    /// Says what is wrong on standard error.
    pub fn report(&self) -> ExitCode {
        match self {
            Failure::Input(error) => {
                complain(said(error));
                ExitCode::from(2)
            }
            Failure::Failed(error) => {
                complain(said(error));
                ExitCode::from(1)
            }
            Failure::Command(code) => ExitCode::from(*code),
            Failure::Code(code, error) => {
                complain(said(error));
                ExitCode::from(*code)
            }
            Failure::Interrupted => {
                complain("interrupted");
                ExitCode::from(130)
            }
            Failure::Refuted => {
                complain("a claim does not hold");
                ExitCode::from(3)
            }
            Failure::NoReader => ExitCode::SUCCESS,
        }
    }
}

/// An error with its causes, each said once: some errors say their cause themselves.
fn said(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if said.is_empty() {
            said = cause;
        } else if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said
}

/// Prints an error as clap does.
pub fn complain(message: impl Display) {
    let style = clap::builder::styling::AnsiColor::Red.on_default().bold();
    anstream::eprintln!("{style}error:{style:#} {message}");
}

/// How a command ends of whose runs some failed, after it has said why.
pub fn of_runs(errors: &[impl Display], all: usize, is_interrupted: bool) -> Outcome {
    complain_of(errors);
    match errors.len() {
        _ if is_interrupted => Err(Failure::Interrupted),
        0 => Ok(()),
        failed => Err(Failure::Failed(anyhow::anyhow!("{failed} of {all} runs failed"))),
    }
}

/// Prints errors of runs, each once.
pub fn complain_of(errors: &[impl Display]) {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for message in errors.iter().map(ToString::to_string) {
        match counted.iter_mut().find(|(other, _)| *other == message) {
            Some((_, count)) => *count += 1,
            None => counted.push((message, 1)),
        }
    }
    for (message, count) in counted {
        if count > 1 { complain(format!("{message} ({count} runs)")) } else { complain(message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn a_cause_that_an_error_says_itself_is_not_said_again() {
        let cause = || anyhow!("no such file");
        assert_eq!(
            said(&cause().context("x.trace: cannot open it: no such file")),
            "x.trace: cannot open it: no such file"
        );
        assert_eq!(
            said(&cause().context("x.trace: cannot open it")),
            "x.trace: cannot open it: no such file"
        );
        assert_eq!(said(&cause()), "no such file");
    }
}
