//! Help, completions, manual pages, and wrong usage.

use crate::{complaint, hearth, json, output};

#[test]
fn help_names_every_command_and_the_exit_codes() {
    let help = output(&["--help"]);
    for word in ["doctor", "start", "topology", "compare", "emulate", "Exit codes", "130", "NO_COLOR"] {
        assert!(help.contains(word), "{word} is missing:\n{help}");
    }
    for command in ["topology", "observe", "start", "exec", "completions", "man"] {
        assert!(output(&[command, "--help"]).contains("Usage: hearth"));
    }
}

#[test]
fn no_command_is_answered_with_help() {
    assert!(complaint(&[], 2).contains("Usage: hearth"));
}

/// How a line could go on, as bash has it.
fn completed(words: &[&str]) -> Vec<String> {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_hearth"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let (line, at) = (words.join(" "), words.len() - 1);
    let script = format!(
        "source <(hearth completions bash); COMP_WORDS=({line}); COMP_CWORD={at}; COMP_TYPE=9; \
         _clap_complete_hearth hearth '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words[at]
    );
    let done = std::process::Command::new("bash").args(["-c", &script]).env("PATH", path).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap().lines().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn completions_and_manual_pages_are_made_from_the_command_line() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(output(&["completions", shell]).contains("COMPLETE"));
    }
    assert_eq!(completed(&["hearth", "obs"]), ["observe"]);
    assert_eq!(completed(&["hearth", "com"]), ["completions", "compare"], "the laboratory's, too");
    assert_eq!(completed(&["hearth", "start", "--policy", "fai"]), ["fair"]);
    assert!(completed(&["hearth", "start", "--pages", "l"]).contains(&"linux".to_owned()));
    let folder = tempfile::tempdir().unwrap();
    hearth(&["man"]).arg(folder.path().join("man1")).assert().success();
    let page = std::fs::read_to_string(folder.path().join("man1/hearth-start.1")).unwrap();
    assert!(page.contains("policy"));
}

#[test]
fn the_topology_of_this_host_is_a_machine() {
    let toml = output(&["topology", "--toml"]);
    assert!(toml.contains("[[cache]]"), "{toml}");
    let topology = json(&["topology", "--json"]);
    assert_eq!(topology["schema"], 1);
    assert!(!topology["cpus"].as_array().unwrap().is_empty());
    assert!(!output(&["topology"]).is_empty());
}
