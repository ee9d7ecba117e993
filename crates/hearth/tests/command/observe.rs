//! `hearth observe`, whole. Observing itself is skipped, with the reason, where it is not possible.

use crate::{complaint, hearth, output};
use serde_json::Value;

/// Whether this machine lets us observe.
fn can_observe() -> bool {
    let tried = hearth(&["observe", "--for", "100ms"]).output().unwrap();
    if matches!(tried.status.code(), Some(4 | 5)) {
        eprintln!("skipped: {}", String::from_utf8_lossy(&tried.stderr));
        return false;
    }
    assert!(tried.status.success(), "{}", String::from_utf8_lossy(&tried.stderr));
    true
}

#[test]
fn help_says_how() {
    let help = output(&["observe", "--help"]);
    for word in ["--pid", "--cgroup", "--for", "--tasks", "--report", "--json", "127"] {
        assert!(help.contains(word), "{word} is missing:\n{help}");
    }
}

#[test]
fn what_is_not_there_is_said_with_what_to_do() {
    for (arguments, words) in [
        (&["observe", "--pid", "4294967294"][..], "there is no process 4294967294"),
        (&["observe", "--cgroup", "no/such/group"], "is no control group"),
        (&["observe", "--for", "soon"], "10s or 2m"),
        (&["observe", "--for", "1ms"], "at least 100ms"),
        (&["observe", "--for", "1s", "--", "true"], "cannot be used with"),
        (&["observe", "--counters-percent", "50"], "up to 10"),
        (&["observe", "--report", "/no/such/folder/page.html"], "its folder does not exist"),
    ] {
        let complaint = complaint(arguments, 2);
        assert!(complaint.contains(words), "{arguments:?}: {complaint}");
    }
}

#[test]
fn a_commands_exit_code_is_passed_on() {
    if !can_observe() {
        return;
    }
    hearth(&["observe", "--", "sh", "-c", "exit 7"]).assert().code(7);
    hearth(&["observe", "--", "sh", "-c", "kill -9 $$"]).assert().code(137);
    assert!(complaint(&["observe", "--", "no-such-command"], 127).contains("command not found"));
    assert!(complaint(&["observe", "--", "/etc/passwd"], 126).contains("could not be started"));
}

#[test]
fn json_and_a_page_tell_of_the_command_and_what_it_starts() {
    if !can_observe() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let script = "echo its own output; head -c 30000000 /dev/zero | cksum >/dev/null";
    let observe = ["observe", "--json", "--report", page.to_str().unwrap(), "--", "sh", "-c", script];
    let text = output(&observe);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("its own output"));
    let report: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    assert_eq!((&report["schema"], &report["partial"]), (&1.into(), &false.into()));
    let programs = report["programs"].as_array().unwrap();
    let cksum = programs.iter().find(|program| program["name"] == "cksum").expect("what a shell starts");
    assert!(cksum["intervals"]["count"].as_u64() > Some(0));
    let ends: f64 = cksum["ends_percent"].as_object().unwrap().values().filter_map(Value::as_f64).sum();
    assert!((99.9..100.1).contains(&ends), "{ends}");
    assert!(report["overhead"]["percent"].as_f64().is_some());
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    assert!(page.contains("cksum") && !page.contains("http:") && !page.contains("https:"));
}
