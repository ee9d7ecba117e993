//! The laboratory's command: what it prints, what it writes, how it ends.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod compare;
mod emulate;
mod lab;
mod names;
mod usage;

use assert_cmd::Command;
use serde_json::Value;

/// The command, outside of any terminal.
fn hearth_lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hearth-lab"));
    command.args(arguments);
    command
}

/// What it prints when it succeeds.
fn output(arguments: &[&str]) -> String {
    String::from_utf8(hearth_lab(arguments).assert().success().get_output().stdout.clone()).unwrap()
}

/// The JSON that it prints when it succeeds.
fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&output(arguments)).unwrap()
}

/// What it says on standard error when it ends with `code`, having printed nothing.
fn complaint(arguments: &[&str], code: i32) -> String {
    let assertion = hearth_lab(arguments).assert().code(code).stdout("");
    String::from_utf8(assertion.get_output().stderr.clone()).unwrap()
}
