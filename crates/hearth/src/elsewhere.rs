//! Commands of other programs: `hearth NAME` runs `hearth-NAME`, as git and cargo do. The laboratory's
//! commands are all of one program, `hearth-lab`. Each gets NAME as its first argument, and is looked for
//! beside this program, then on PATH.

use crate::cli::Cli;
use anyhow::{Context, anyhow};
use clap::CommandFactory;
use hearth_command::failure::{Failure, Outcome};
use hearth_command::{complete, program};
use hearth_machine::located;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

const LABORATORY: &str = "hearth-lab";

/// In Python: no laboratory is needed to know of it.
const SWEEP: &str = "sweep";

/// What the laboratory does.
const OF_LABORATORY: [&str; 6] = ["compare", "emulate", "lab", "list", "record", "show"];

/// Becomes the program that has this command; `words` are its name and its arguments.
pub fn run(words: &[OsString]) -> Outcome {
    if let [help, of @ ..] = words
        && help == "help"
    {
        return run_help(of);
    }
    let name = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let is_of_laboratory = OF_LABORATORY.contains(&name.as_str());
    let program = if is_of_laboratory { LABORATORY.to_owned() } else { format!("hearth-{name}") };
    match program::find(&program) {
        Some(path) => {
            let error = Command::new(&path).arg0("hearth").args(words).exec();
            Err(error).with_context(|| format!("cannot run {}", path.display())).map_err(Failure::Failed)
        }
        None if is_of_laboratory => Err(Failure::Failed(anyhow!(
            "`{name}` is a command of {LABORATORY}, which is neither beside this program nor on PATH; \
             `make build` in Hearth's sources builds it"
        ))),
        None if name == SWEEP => Err(Failure::Failed(anyhow!(
            "`{name}` is a command of {program}, which is neither beside this program nor on PATH; `make build` in \
             Hearth's sources puts it there, or `pip install ./python`"
        ))),
        None => Err(unknown(&name, &program)),
    }
}

/// Where a shell asks how a command line of the laboratory could go on, that answers.
pub fn complete() {
    if std::env::var_os(complete::VARIABLE).is_none() {
        return;
    }
    // The shell gives the line behind `--`: this program's name, then the command's.
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let begin = words.iter().position(|word| word == "--").map(|at| at + 2);
    let name = begin.and_then(|at| words.get(at)).and_then(|name| name.to_str());
    if let Some(path) =
        name.filter(|name| OF_LABORATORY.contains(name)).and_then(|_| program::find(LABORATORY))
    {
        // If that cannot be run, nothing is completed.
        let _ = Command::new(path).arg0("hearth").args(&words).exec();
    }
}

/// With the commands of other programs, so that their names are completed.
pub fn with_names(command: clap::Command) -> clap::Command {
    OF_LABORATORY
        .into_iter()
        .chain([SWEEP])
        .fold(command, |command, name| command.subcommand(clap::Command::new(name)))
}

/// `hearth help NAME` is `hearth NAME --help`, whoever has that command.
fn run_help(of: &[OsString]) -> Outcome {
    let path = std::env::current_exe().context("cannot find this program").map_err(Failure::Failed)?;
    let error = Command::new(&path).arg0("hearth").args(of.first()).arg("--help").exec();
    Err(error).with_context(|| format!("cannot run {}", path.display())).map_err(Failure::Failed)
}

fn unknown(name: &str, program: &str) -> Failure {
    let command = Cli::command();
    let own = command.get_subcommands().map(clap::Command::get_name);
    let known: Vec<&str> = own.chain(OF_LABORATORY).chain([SWEEP]).collect();
    let mend = match located::nearest(name, &known) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("`hearth --help` lists them; another program's would be {program} on PATH"),
    };
    Failure::Input(anyhow!("there is no command called {name:?}; {mend}"))
}
