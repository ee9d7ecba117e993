//! `hearth completions` and `hearth man`: made from the command line's own definition.

use crate::cli::Cli;
use crate::failure::{Failure, Outcome};
use crate::output;
use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Args)]
pub struct ManArguments {
    /// The folder; made if it does not exist
    folder: PathBuf,
}

pub fn completions(arguments: &CompletionsArguments) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "hearth", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

pub fn man(arguments: &ManArguments) -> Outcome {
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .with_context(|| format!("cannot write manual pages into {}", folder.display()))
        .map_err(Failure::Failed)
}
