//! The commands `completions` and `man`: made from a command line's own definition.

use crate::complete;
use crate::failure::{Failure, Outcome};
use crate::output;
use anyhow::Context;
use clap::{Args, Command};
use clap_complete::Shell;
use std::path::PathBuf;

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// The arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArguments {
    /// The folder; made if it does not exist
    folder: PathBuf,
}

/// Prints a completion script for a command.
pub fn completions(arguments: &CompletionsArguments, command: &Command) -> Outcome {
    let script =
        complete::script(&arguments.shell.to_string(), command.get_name()).map_err(Failure::failed)?;
    output::print(&String::from_utf8_lossy(&script))
}

/// Writes a command's manual pages.
pub fn man(arguments: &ManArguments, command: Command) -> Outcome {
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .with_context(|| format!("cannot write manual pages into {}", folder.display()))
        .map_err(Failure::Failed)
}
