//! The `hearth` command.

mod cli;
mod compare;
mod failure;
mod generate;
mod interrupt;
mod lab;
mod list;
mod names;
mod output;
mod progress;
mod record;
mod show;
mod table;
mod topology;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Record(arguments) => record::run(&arguments),
        Command::Topology(arguments) => topology::run(&arguments),
        Command::List(arguments) => list::run(&arguments),
        Command::Show(arguments) => show::run(&arguments),
        Command::Completions(arguments) => generate::completions(&arguments),
        Command::Man(arguments) => generate::man(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
