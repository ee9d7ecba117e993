//! The `hearth` command.

#![cfg_attr(not(feature = "lab"), allow(dead_code, reason = "the lab uses some of what all commands share"))]

#[cfg(feature = "lab")]
mod cells;
mod cli;
#[cfg(feature = "lab")]
mod compare;
#[cfg(feature = "emulate")]
mod emulate;
#[cfg(feature = "linux")]
mod exec;
mod failure;
mod generate;
mod interrupt;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "linux")]
mod linux;
#[cfg(feature = "lab")]
mod list;
mod names;
#[cfg(feature = "linux")]
mod neighbours;
#[cfg(feature = "linux")]
mod observe;
mod output;
#[cfg(feature = "lab")]
mod progress;
#[cfg(feature = "lab")]
mod record;
#[cfg(feature = "lab")]
mod show;
#[cfg(any(feature = "lab", feature = "linux"))]
mod table;
#[cfg(feature = "linux")]
mod top;
mod topology;
#[cfg(feature = "linux")]
mod trial;
#[cfg(feature = "lab")]
mod values;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        #[cfg(feature = "lab")]
        Command::Compare(arguments) => compare::run(&arguments),
        #[cfg(feature = "lab")]
        Command::Lab(arguments) => lab::run(&arguments),
        #[cfg(feature = "lab")]
        Command::Record(arguments) => record::run(&arguments),
        #[cfg(feature = "emulate")]
        Command::Emulate(arguments) => emulate::run(&arguments),
        #[cfg(feature = "linux")]
        Command::Observe(arguments) => observe::run(&arguments),
        #[cfg(feature = "linux")]
        Command::Neighbours(arguments) => neighbours::run(&arguments),
        #[cfg(feature = "linux")]
        Command::Exec(arguments) => exec::run(&arguments),
        Command::Topology(arguments) => topology::run(&arguments),
        #[cfg(feature = "lab")]
        Command::List(arguments) => list::run(&arguments),
        #[cfg(feature = "lab")]
        Command::Show(arguments) => show::run(&arguments),
        #[cfg(feature = "linux")]
        Command::Doctor(arguments) => linux::doctor::run(&arguments),
        #[cfg(feature = "linux")]
        Command::Start(arguments) => linux::start::run(&arguments),
        #[cfg(feature = "linux")]
        Command::Trial(arguments) => trial::run(&arguments),
        #[cfg(feature = "linux")]
        Command::Explain(arguments) => linux::explain::run(&arguments),
        #[cfg(feature = "linux")]
        Command::Pages(arguments) => linux::pages::run(&arguments),
        #[cfg(feature = "linux")]
        Command::Set(arguments) => linux::set::run(&arguments),
        #[cfg(feature = "linux")]
        Command::Cpus(arguments) => linux::cpus::run(&arguments),
        #[cfg(feature = "linux")]
        Command::Trace(arguments) => linux::trace::run(&arguments),
        #[cfg(feature = "linux")]
        Command::Stop(arguments) => linux::stop::run(&arguments),
        #[cfg(feature = "linux")]
        Command::Top(arguments) => top::run(&arguments),
        #[cfg(feature = "linux")]
        Command::Undo(arguments) => linux::undo::run(&arguments),
        #[cfg(feature = "linux")]
        Command::Status(arguments) => linux::status::run(&arguments),
        Command::Completions(arguments) => generate::completions(&arguments),
        Command::Man(arguments) => generate::man(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
