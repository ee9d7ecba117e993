//! Commands of other programs: found, told their names, or explained.

use crate::{complaint, hearth};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// A folder with a copy of the command, in which nothing else is.
fn alone() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(env!("CARGO_BIN_EXE_hearth"), folder.path().join("hearth")).unwrap();
    folder
}

fn program(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

fn run(folder: &Path, arguments: &[&str], path: &Path) -> (i32, String, String) {
    let output = assert_cmd::Command::new(folder.join("hearth")).args(arguments).env("PATH", path).output();
    let output = output.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_laboratorys_commands_are_one_programs_which_is_told_the_name() {
    let (here, there) = (alone(), tempfile::tempdir().unwrap());
    let echo = |word: &str| format!("#!/bin/sh\necho {word} \"$@\"; exit 3\n");
    program(there.path(), "hearth-lab", &echo("on-path"));
    let told = |path| run(here.path(), &["compare", "-p", "a b"], path);
    assert_eq!(told(there.path()), (3, "on-path compare -p a b\n".into(), String::new()));
    program(here.path(), "hearth-lab", &echo("beside"));
    assert_eq!(told(there.path()).1, "beside compare -p a b\n", "beside comes first");
    assert_eq!(run(here.path(), &["lab", "T"], there.path()).1, "beside lab T\n");
}

#[test]
fn help_is_of_whoever_has_the_command() {
    let (here, there) = (alone(), tempfile::tempdir().unwrap());
    program(there.path(), "hearth-lab", "#!/bin/sh\necho \"$@\"\n");
    let said = |words: &[&str]| run(here.path(), words, there.path());
    assert_eq!(said(&["help", "compare"]).1, "compare --help\n");
    assert!(said(&["help", "start"]).1.contains("Usage: hearth start"));
    assert_eq!(said(&["help"]).1, said(&["--help"]).1);
    assert_eq!(said(&["help", "zzzzzzzz"]).0, 2);
}

#[test]
fn any_program_of_that_name_is_a_command() {
    let (here, there) = (alone(), tempfile::tempdir().unwrap());
    program(there.path(), "hearth-hello", "#!/bin/sh\necho \"$@\"\n");
    assert_eq!(run(here.path(), &["hello", "--world"], there.path()).1, "hello --world\n");
}

#[test]
fn what_is_missing_is_explained() {
    let here = alone();
    let (code, said, complaint) = run(here.path(), &["compare"], here.path());
    assert_eq!((code, said.as_str()), (1, ""));
    assert!(complaint.contains("`compare` is a command of hearth-lab") && complaint.contains("make build"));
    let (code, _, complaint) = run(here.path(), &["sweep", "a.toml"], here.path());
    assert!(
        code == 1 && complaint.contains("hearth-sweep") && complaint.contains("pip install"),
        "{complaint}"
    );
    fs::write(here.path().join("hearth-lab"), "no program").unwrap();
    assert_eq!(run(here.path(), &["compare"], here.path()).0, 1, "a file that nobody may execute");
}

#[test]
fn a_command_that_nobody_has_is_answered_with_the_nearest() {
    assert!(complaint(&["statsu"], 2).contains("did you mean status?"));
    assert!(complaint(&["comapre"], 2).contains("did you mean compare?"));
    assert!(complaint(&["zzzzzzzz"], 2).contains("hearth-zzzzzzzz on PATH"));
    assert!(complaint(&["../hearth"], 2).contains("there is no command"));
    hearth(&[""]).assert().code(2);
}
