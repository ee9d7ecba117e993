//! Completion in shells. The shell asks the command itself, so it completes the names of machines, policies and
//! programs too, and always those of the version that is installed.

use clap::Command;
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{EnvCompleter, Shells};
use std::ffi::OsStr;

/// The variable by which a shell asks.
pub const VARIABLE: &str = "COMPLETE";

/// Names.
pub type Names = fn() -> Vec<&'static str>;

/// Answers a shell that asks how a command line could go on, and ends the process; does nothing if none asks.
pub fn answer(command: impl Fn() -> Command) {
    CompleteEnv::with_factory(command).complete();
}

/// What a shell has to load so that it asks.
pub(crate) fn script(shell: &str, name: &str) -> std::io::Result<Vec<u8>> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let known: Option<&dyn EnvCompleter> = shells.completer(shell);
    known.map_or(Ok(()), |shell| shell.write_registration(VARIABLE, name, name, name, &mut script))?;
    Ok(script)
}

/// Completes a name, or a file.
pub fn names(all: Names) -> ArgValueCompleter {
    joined(all, Vec::new)
}

/// Completes names that are joined by `+`: the first, and those behind it; or a file.
pub fn joined(first: Names, later: Names) -> ArgValueCompleter {
    ArgValueCompleter::new(move |word: &OsStr| {
        let text = word.to_string_lossy();
        match text.rfind('+') {
            Some(plus) => begin_with(&text[..=plus], &text[plus + 1..], &later()),
            None => or_files(word, begin_with("", &text, &first())),
        }
    })
}

/// Completes names in a list with commas between, of which clap does not know.
pub fn listed(all: fn() -> Vec<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |word: &OsStr| {
        let text = word.to_string_lossy();
        let (before, last) = text.split_at(text.rfind(',').map_or(0, |comma| comma + 1));
        let all = all();
        begin_with(before, last, &all.iter().map(String::as_str).collect::<Vec<_>>())
    })
}

fn begin_with(before: &str, begun: &str, names: &[&str]) -> Vec<CompletionCandidate> {
    let fitting = names.iter().filter(|name| name.starts_with(begun));
    fitting.map(|name| CompletionCandidate::new(format!("{before}{name}"))).collect()
}

/// Files are offered where no name fits.
fn or_files(word: &OsStr, names: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    if names.is_empty() { PathCompleter::file().complete(word) } else { names }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(completer: &ArgValueCompleter, word: &str) -> Vec<String> {
        let candidates = completer.complete(OsStr::new(word));
        candidates.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn each_part_of_what_is_joined_is_completed() {
        let completer = joined(|| vec!["fair", "fast", "both"], || vec!["masks", "gangs"]);
        assert_eq!(values(&completer, "fa"), ["fair", "fast"]);
        assert_eq!(values(&completer, "fair+"), ["fair+masks", "fair+gangs"]);
        assert_eq!(values(&completer, "fair+masks+g"), ["fair+masks+gangs"]);
        assert_eq!(values(&completer, "none/such"), [""; 0]);
    }

    #[test]
    fn a_list_is_gone_on_with() {
        let completer = listed(|| vec!["kernel".to_owned(), "hearth:fair".to_owned()]);
        assert_eq!(values(&completer, ""), ["kernel", "hearth:fair"]);
        assert_eq!(values(&completer, "kernel,h"), ["kernel,hearth:fair"]);
    }

    #[test]
    fn every_shell_has_a_script_that_asks_the_command() {
        for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
            let script = String::from_utf8(script(shell, "hearth").unwrap()).unwrap();
            assert!(script.contains(VARIABLE) && script.contains("hearth"), "{shell}: {script}");
        }
    }
}
