//! The laboratory's command: compare, lab, record, emulate, list, show. `hearth NAME` finds it.

mod cells;
mod cli;
mod compare;
mod emulate;
mod lab;
mod list;
mod names;
mod progress;
mod record;
mod show;
mod values;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use hearth_command::{complete, generate};
use std::process::ExitCode;

fn main() -> ExitCode {
    complete::answer(Cli::command);
    let result = match Cli::parse().command {
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Record(arguments) => record::run(&arguments),
        Command::Emulate(arguments) => emulate::run(&arguments),
        Command::List(arguments) => list::run(&arguments),
        Command::Show(arguments) => show::run(&arguments),
        Command::Completions(arguments) => generate::completions(&arguments, &Cli::command()),
        Command::Man(arguments) => generate::man(&arguments, Cli::command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
