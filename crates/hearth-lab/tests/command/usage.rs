//! Help, completions, manual pages, and wrong usage.

use crate::{complaint, hearth_lab, output};

#[test]
fn help_names_every_command_and_the_exit_codes() {
    let help = output(&["--help"]);
    for word in ["compare", "emulate", "lab", "record", "list", "show", "Exit codes", "130", "NO_COLOR"] {
        assert!(help.contains(word), "{word} is missing:\n{help}");
    }
    for command in ["compare", "lab", "record", "emulate", "list", "show", "completions", "man"] {
        assert!(output(&[command, "--help"]).contains("Usage: hearth-lab"));
    }
}

#[test]
fn no_command_is_answered_with_help() {
    assert!(complaint(&[], 2).contains("Usage: hearth-lab"));
}

#[test]
fn a_number_out_of_range_is_answered_with_the_range() {
    for (arguments, range) in [
        (&["compare", "--scale", "0"][..], "above 0 and up to 1"),
        (&["compare", "--scale", "nan"], "above 0 and up to 1"),
        (&["compare", "--seeds", "0"], "from 1 to 1000"),
        (&["compare", "--planner", "mask"], "masks"),
        (&["compare", "--jobs", "0"], "from 1 to 1024"),
        (&["compare", "--copies", "2"], "--trace"),
        (&["lab", "--scale", "1.5"], "above 0 and up to 1"),
    ] {
        let complaint = complaint(arguments, 2);
        assert!(complaint.contains(range), "{arguments:?}: {complaint}");
    }
}

#[test]
fn completions_and_manual_pages_are_made_from_the_command_line() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(output(&["completions", shell]).contains("COMPLETE"));
    }
    for (words, expected) in [
        ("compare --machine server-2s,chiplet-6", "server-2s,chiplet-64"),
        ("compare --policies plain,fair+gan", "plain,fair+gangs"),
        ("compare matrix+matr", "matrix+matrix"),
        ("emulate --schedulers kernel,hearth:fai", "kernel,hearth:fair"),
        ("show policy bot", "both"),
    ] {
        // As bash asks.
        let words: Vec<&str> = ["hearth-lab"].into_iter().chain(words.split(' ')).collect();
        let mut asked = hearth_lab(&["--"]);
        asked.args(&words).env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
        asked.env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_COMP_TYPE", "9");
        let said = String::from_utf8(asked.assert().success().get_output().stdout.clone()).unwrap();
        assert!(said.lines().any(|line| line.trim_end() == expected), "{expected}: {said}");
    }
    let folder = tempfile::tempdir().unwrap();
    hearth_lab(&["man"]).arg(folder.path().join("man1")).assert().success();
    let page = std::fs::read_to_string(folder.path().join("man1/hearth-lab-compare.1")).unwrap();
    assert!(page.contains("policies"));
}

#[test]
fn a_program_that_does_not_exist_cannot_be_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("x.trace");
    let complaint = complaint(&["record", "-o", trace.to_str().unwrap(), "--", "no-such-program"], 2);
    assert!(complaint.contains("no-such-program: command not found"), "{complaint}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn only_a_trace_or_an_empty_file_is_replaced_by_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    std::fs::write(&notes, "mine").unwrap();
    let arguments = ["record", "-o", notes.to_str().unwrap(), "--", "true"];
    let complaint = complaint(&arguments, 2);
    assert!(complaint.contains("is not a Hearth trace") && complaint.contains("--force"), "{complaint}");
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "mine");
}

#[test]
fn no_file_takes_the_place_of_a_device() {
    let complaint = complaint(&["compare", "--report", "/dev/null", "matrix"], 2);
    assert!(complaint.contains("it is a device"), "{complaint}");
}

#[test]
fn a_file_that_is_no_trace_is_not_to_be_recorded_over() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["", "mine", "127.0.0.1 localhost, and enough text to be longer than a trace's frame"] {
        let notes = folder.path().join("notes");
        std::fs::write(&notes, text).unwrap();
        let notes = notes.to_str().unwrap();
        let complaint = complaint(&["compare", "--trace", notes], 2);
        assert!(complaint.contains("not a Hearth trace"), "{complaint}");
        assert_eq!(complaint.matches(notes).count(), 1, "it is named as the culprit only: {complaint}");
    }
}
