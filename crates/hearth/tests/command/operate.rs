//! Commands for the real kernel, as far as they answer on any kernel.

use crate::{complaint, hearth, json, output};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A host's files, by path.
fn host(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

const READY: [(&str, &str); 4] = [
    ("proc/sys/kernel/osrelease", "6.12.0\n"),
    ("sys/kernel/sched_ext/state", "disabled\n"),
    ("sys/kernel/btf/vmlinux", "types"),
    ("sys/devices/system/cpu/online", "0-1\n"),
];

#[test]
fn doctor_tells_a_host_that_is_ready_from_one_that_cannot() {
    let root = tempfile::tempdir().unwrap();
    let arguments = ["doctor", "--root", root.path().to_str().unwrap()];
    host(root.path(), &READY);
    assert!(output(&arguments).contains("2 CPUs"));

    fs::remove_dir_all(root.path().join("sys/kernel/sched_ext")).unwrap();
    let assertion = hearth(&arguments).assert().code(4);
    let shown = String::from_utf8(assertion.get_output().stdout.clone()).unwrap();
    assert!(shown.contains("missing") && shown.contains("CONFIG_SCHED_CLASS_EXT"), "{shown}");
    let said = String::from_utf8(assertion.get_output().stderr.clone()).unwrap();
    assert!(said.contains("cannot schedule this machine: sched_ext"), "{said}");
}

#[test]
fn doctor_s_json_has_a_verdict_and_findings() {
    let root = tempfile::tempdir().unwrap();
    host(root.path(), &READY);
    let report = json(&["doctor", "--json", "--root", root.path().to_str().unwrap()]);
    assert_eq!(report["verdict"], "ready");
    let kernel = &report["findings"][0];
    assert_eq!((&kernel["subject"], &kernel["level"]), (&Value::from("kernel"), &Value::from("ok")));
}

#[test]
fn wrong_input_is_refused_before_anything_is_done() {
    for (arguments, word) in [
        (&["doctor", "--root", "/no/such/folder"][..], "no folder"),
        (&["start", "--policy", "fiar"], "did you mean fair"),
        (&["start", "--policy", "kernel"], "for the simulated machine"),
        (&["trial", "--policy", "kernel", "--", "true"], "for the simulated machine"),
        (&["start", "--pages", "lniux"], "did you mean linux"),
        (&["start", "--pages", "post-facto"], "it needs a recorded run, which `hearth lab M` replays"),
        (&["start", "--only", "a/../b"], "no meaning"),
        (&["start", "--only", "/"], "whole machine"),
        (&["start", "--only", "no-such-unit.service"], "no such cgroup"),
        (&["start", "--for", "soon"], "--for"),
        (&["start", "--metrics", "9669"], "--metrics"),
        (&["trial"], "<COMMAND>"),
        (&["trial", "--rounds", "0", "--", "true"], "from 1 to 200 rounds"),
        (&["trial", "--seed", "x", "--", "true"], "whole number"),
        (&["explain", "notapid"], "such as 4242"),
        (&["explain", "1", "--for", "x"], "60s or 10m"),
        (&["cpus", "0"], "such as 4242"),
        (&["set", "bind", "x", "1"], "whole number above 0"),
        (&["exec", "--set", "--cpus", "0", "--", "true"], "whole number above 0"),
        (&["start", "--metrics", "1.2.3.4:70000"], "port up to 65535"),
        (&["trial", "--window", "5s", "--", "true"], "cannot be used with"),
        (&["trial", "--metric", "echo 1", "--", "true"], "cannot be used with"),
        (&["trial", "--pages", "lniux", "--", "true"], "did you mean linux"),
        (&["trial", "--pages", "/no/such.toml", "--", "true"], "/no/such.toml: cannot read this page policy"),
        (&["trial", "--pages", "post-facto", "--", "true"], "it needs a recorded run"),
        (&["trial", "--pages-only", "--pages", "none", "--", "true"], "would do nothing"),
        (&["trial", "--pages-only", "--policy", "fair", "--", "true"], "cannot be used with"),
        (&["trial", "--pages", "linux", "--metric", "echo 1"], "--pages cannot be compared by --metric"),
        (&["trial", "--pages-only", "--metric", "echo 1"], "--pages-only cannot be compared by --metric"),
        (&["top", "--interval", "1ms"], "50ms"),
        (&["top"], "--once"),
    ] {
        let complaint = complaint(arguments, 2);
        assert!(complaint.contains(word), "{arguments:?}: {complaint}");
    }
}

#[test]
fn without_a_daemon_status_and_undo_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let with = |arguments: &[&str]| {
        let mut command = hearth(arguments);
        command.env("HEARTH_RUN", folder.path()).env("HEARTH_STATE", folder.path());
        String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
    };
    assert!(with(&["status"]).contains("Hearth does not run"));
    assert_eq!(with(&["undo"]), "There is nothing to undo\n");
    assert_eq!(with(&["stop"]), "Hearth does not run\n");
    let status: Value = serde_json::from_str(&with(&["status", "--json"])).unwrap();
    assert_eq!(status["hearth"], Value::Null);
}

#[test]
fn commands_that_need_a_daemon_say_so_with_one_code() {
    let folder = tempfile::tempdir().unwrap();
    let own = std::process::id().to_string();
    let file = folder.path().join("trace");
    for arguments in [
        &["explain", own.as_str()][..],
        &["trace", file.to_str().unwrap()],
        &["set", "list"],
        &["set", "create"],
        &["set", "bind", "1", own.as_str()],
        &["set", "destroy", "1"],
    ] {
        let assertion = hearth(arguments).env("HEARTH_RUN", folder.path()).assert().code(8).stdout("");
        let said = String::from_utf8(assertion.get_output().stderr.clone()).unwrap();
        assert!(said.contains("Hearth does not run here; begin with `sudo hearth start`"), "{said}");
    }
}

#[test]
fn a_program_that_is_not_there_is_said_once() {
    let (_, said, code) = exec(&["--", "no-such-program-anywhere"]);
    assert_eq!((code, said.lines().count()), (Some(127), 1), "{said}");
}

#[test]
fn undo_takes_back_what_a_journal_says_and_keeps_a_damaged_one() {
    let folder = tempfile::tempdir().unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = sleeper.id();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let start = stat.rsplit(") ").next().unwrap().split(' ').nth(19).unwrap();
    let entry = |start: &str| {
        format!(
            "{{\"change\":\"class\",\"thread\":{{\"tid\":{pid},\"start\":{start}}},\"before\":{{\"policy\":3,\
             \"reset_on_fork\":false,\"nice\":0,\"slice_ns\":0}},\"policy\":0}}\n"
        )
    };
    let header = format!("{{\"hearth_journal\":1,\"boot\":\"{}\"}}\n", boot.trim());
    let journal = format!("{header}{}{}nonsense\n", entry(start), entry("1"));
    fs::write(folder.path().join("journal"), journal).unwrap();

    let mut undo = hearth(&["undo"]);
    undo.env("HEARTH_RUN", folder.path()).env("HEARTH_STATE", folder.path());
    let text = String::from_utf8(undo.assert().success().get_output().stdout.clone()).unwrap();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(text.contains("(sleep): back to SCHED_BATCH: undone"), "{text}");
    assert!(text.contains("1 undone, 1 gone"), "{text}");
    assert!(text.contains("damaged in line 4"), "{text}");
    let kept = fs::read_dir(folder.path()).unwrap().flatten();
    assert_eq!(kept.filter(|file| file.file_name().to_string_lossy().contains("damaged")).count(), 1);
}

#[test]
fn top_prints_one_screen_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let mut top = hearth(&["top", "--once", "--interval", "200ms"]);
    top.env("HEARTH_RUN", folder.path());
    let text = String::from_utf8(top.assert().success().get_output().stdout.clone()).unwrap();
    assert!(text.contains("task name"), "{text}");
}

#[test]
fn where_no_scheduler_can_be_loaded_start_and_trial_say_so_and_change_nothing() {
    if Path::new("/sys/kernel/sched_ext").exists() {
        eprintln!("skipped: this kernel has sched_ext");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["start"][..], &["start", "--foreground"], &["trial", "--", "true"]] {
        let mut command = hearth(arguments);
        command.env("HEARTH_RUN", folder.path()).env("HEARTH_STATE", folder.path());
        let assertion = command.assert().code(4);
        let said = String::from_utf8(assertion.get_output().stderr.clone()).unwrap();
        assert!(said.contains("cannot load a scheduler") && said.contains("hearth observe"), "{said}");
        assert!(!folder.path().join("journal").exists() && !folder.path().join("socket").exists());
    }
}

/// What `hearth exec` prints and says where no daemon runs.
fn exec(arguments: &[&str]) -> (String, String, Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = hearth(&[&["exec"], arguments].concat());
    command.env("HEARTH_RUN", folder.path()).env_remove("LD_PRELOAD");
    let done = command.output().unwrap();
    let [printed, said] = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (printed, said, done.status.code())
}

#[test]
fn a_program_with_a_class_runs_in_a_cgroup_of_its_own_or_as_others_do() {
    let script = "cat /proc/self/cgroup; exit 7";
    let (printed, said, code) = exec(&["--class", "best-effort", "--", "sh", "-c", script]);
    assert_eq!(code, Some(7), "{said}");
    assert!(said.contains("the program runs as others do"), "{said}");
    let Some((_, name)) = printed.split_once("0::/hearth.best-effort/exec-") else {
        println!("skipped the rest: this user or machine has no classes: {said}");
        return;
    };
    assert!(said.starts_with("hearth: classes act under a Hearth that isolates"), "{said}");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let root = mounts.lines().find(|line| line.contains(" cgroup2 ")).unwrap().split(' ').nth(1).unwrap();
    let left = Path::new(root).join(format!("hearth.best-effort/exec-{}", name.lines().next().unwrap()));
    assert!(!left.exists(), "{}", left.display());
}

#[test]
fn a_program_with_a_class_that_cannot_be_run_has_the_codes_of_a_shell() {
    assert_eq!(exec(&["--class", "cache-fair", "--", "no-such-program-anywhere"]).2, Some(127));
    let (_, said, code) = exec(&["--class", "gold", "--", "true"]);
    assert!(code == Some(2) && said.contains("cache-fair, best-effort"), "{said}");
}
