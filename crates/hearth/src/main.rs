//! The `hearth` command: what an administrator and a user of a machine need.

mod cli;
mod elsewhere;
mod exec;
mod linux;
mod neighbours;
mod observe;
mod top;
mod topology;
mod trial;
mod values;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use hearth_command::{complete, generate};
use std::process::ExitCode;

fn main() -> ExitCode {
    elsewhere::complete();
    complete::answer(|| elsewhere::with_names(Cli::command()));
    let result = match Cli::parse().command {
        Command::Observe(arguments) => observe::run(&arguments),
        Command::Neighbours(arguments) => neighbours::run(&arguments),
        Command::Exec(arguments) => exec::run(&arguments),
        Command::Topology(arguments) => topology::run(&arguments),
        Command::Doctor(arguments) => linux::doctor::run(&arguments),
        Command::Start(arguments) => linux::start::run(&arguments),
        Command::Trial(arguments) => trial::run(&arguments),
        Command::Explain(arguments) => linux::explain::run(&arguments),
        Command::Pages(arguments) => linux::pages::run(&arguments),
        Command::Set(arguments) => linux::set::run(&arguments),
        Command::Cpus(arguments) => linux::cpus::run(&arguments),
        Command::Trace(arguments) => linux::trace::run(&arguments),
        Command::Stop(arguments) => linux::stop::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Undo(arguments) => linux::undo::run(&arguments),
        Command::Status(arguments) => linux::status::run(&arguments),
        Command::Completions(arguments) => generate::completions(&arguments, &Cli::command()),
        Command::Man(arguments) => generate::man(&arguments, Cli::command()),
        Command::Elsewhere(words) => elsewhere::run(&words),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
