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

#[test]
fn completions_and_manual_pages_are_made_from_the_command_line() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(output(&["completions", shell]).contains("observe"));
    }
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
