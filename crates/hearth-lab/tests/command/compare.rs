//! `hearth compare`, whole.

use crate::{complaint, hearth_lab, json, output};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const TINY: [&str; 5] = ["compare", "--scale", "0.02", "--policies", "standard,light"];

fn tiny<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&TINY[..], more].concat()
}

#[test]
fn a_table_and_a_sentence_tell_what_came_out() {
    let text = output(&tiny(&["--verbose", "matrix+cholesky"]));
    for word in ["policy", "standard", "light", "misses", "slice", "cholesky", "response"] {
        assert!(text.contains(word), "{word} is missing:\n{text}");
    }
    let last = text.lines().last().unwrap();
    assert!(
        last.starts_with("light against standard: ") && last.contains("CPU time, last application done"),
        "{last}"
    );
    assert!(last.ends_with("one seed, so the spread is not known."), "{last}");
    assert!(!text.contains('\u{1b}'), "colours outside of a terminal");
}

#[test]
fn json_has_everything_that_was_measured() {
    let compared = json(&tiny(&["--seeds", "2", "--json", "matrix"]));
    assert_eq!((&compared["schema"], &compared["partial"]), (&1.into(), &false.into()));
    assert!(compared["summary"].as_str().unwrap().ends_with("the spread of seeds 1 to 2."));
    let policies = compared["policies"].as_array().unwrap();
    assert_eq!(policies.len(), 2);
    for policy in policies {
        let runs = policy["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 2);
        let total = &runs[0]["total"];
        assert!(total["counters"]["causes"].as_array().unwrap().iter().any(|count| count.as_u64() > Some(0)));
        assert!(!total["slice_lengths"]["counts"].as_array().unwrap().is_empty());
        assert!(policy["summary"]["execution_s"]["mean"].as_f64() > Some(0.0));
    }
}

#[test]
fn csv_has_a_row_for_each_run_of_what_json_sums_up() {
    let machines = ["--machine", "sgi-4d340,xeon-smp2", "--seeds", "3-4", "matrix"];
    let text = output(&tiny(&[&machines[..], &["--csv"]].concat()));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|column| *column == name).unwrap();
    let (machine, policy, seed) = (column("machine"), column("policy"), column("seed"));
    let keys: Vec<_> = rows[1..].iter().map(|row| [row[machine], row[policy], row[seed]].join(" ")).collect();
    let expected = ["sgi-4d340", "xeon-smp2"].map(|machine| {
        ["standard 3", "standard 4", "light 3", "light 4"].map(|run| format!("{machine} {run}"))
    });
    assert_eq!(keys, expected.concat());
    let compared = json(&tiny(&[&machines[..], &["--json"]].concat()));
    assert_eq!(compared["schema"], 1);
    let summary = &compared["comparisons"][1]["policies"][1]["summary"];
    for measure in ["cpu_s", "misses", "slice_ms"] {
        let sum: f64 = rows[7..].iter().map(|row| row[column(measure)].parse::<f64>().unwrap()).sum();
        let mean = summary[measure]["mean"].as_f64().unwrap();
        assert!((sum / 2.0 - mean).abs() < 1e-9 * mean, "{measure}: {} for {mean}", sum / 2.0);
    }
    let part = |name: &str| rows[7][column(name)].parse::<f64>().unwrap();
    let causes = rows[0].iter().filter(|name| name.starts_with("causes_"));
    assert_eq!(causes.map(|name| part(name)).sum::<f64>(), part("misses"));
    assert!(complaint(&tiny(&["--csv", "--json", "matrix"]), 2).contains("cannot be used with"));
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for arguments in [tiny(&["--json", "matrix+matrix"]), containers(&["--json"])] {
        let one_thread = [&arguments[..], &["--jobs", "1"]].concat();
        assert_eq!(output(&arguments), output(&one_thread));
    }
}

/// A machine that the masks of a workload part, without a planner and with one.
fn containers<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let named = ["compare", "--scale", "0.1", "--machine", "dash-16", "--policies", "fair,fair+masks"];
    [&named[..], more, &["containers"]].concat()
}

#[test]
fn what_the_planner_did_is_told_and_tasks_of_a_container_end_together() {
    let text = output(&containers(&[]));
    assert!(text.contains("fair+masks: planner masks; steps: "), "{text}");
    assert!(text.contains("3 parts, CPUs 0-3 | 4-9 | 10-15"), "{text}");
    let compared = json(&containers(&["--json"]));
    let run = |policy: usize| &compared["policies"][policy]["runs"][0];
    assert!(run(0).get("planned").is_none());
    assert_eq!((&run(1)["planned"]["planner"], &run(1)["planned"]["failures"]), (&"masks".into(), &0.into()));
    let ends_s = |policy: usize| {
        let end = |job: usize| run(policy)["applications"][job]["execution_ns"].as_f64().unwrap() / 1e9;
        let ends: Vec<f64> = (0..7).map(end).collect();
        ends.iter().copied().fold(0.0, f64::max) - ends.iter().copied().fold(f64::MAX, f64::min)
    };
    assert!(ends_s(0) > 1.0 && ends_s(1) < 0.4, "{} s and {} s apart", ends_s(0), ends_s(1));
}

#[test]
fn a_planner_is_that_of_all_policies_that_name_none() {
    let compared = json(&tiny(&["--json", "--planner", "masks", "matrix"]));
    let names: Vec<_> = compared["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|policy| policy["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["standard+masks", "light+masks"]);
}

#[test]
fn a_report_and_a_trace_are_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (page, trace) = (folder.path().join("page.html"), folder.path().join("run.pftrace"));
    hearth_lab(&tiny(&["matrix", "--report", page.to_str().unwrap(), "--perfetto", trace.to_str().unwrap()]))
        .assert()
        .success();
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    assert!(
        !page.contains("http:") && !page.contains("https:"),
        "the page asks for something from elsewhere"
    );
    // Each packet of a trace begins with the tag of field 1.
    assert_eq!(std::fs::read(trace).unwrap()[0], 0x0a);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().join("missing/page.html"), folder.path().to_owned()] {
        let complaint = complaint(&["compare", "--report", path.to_str().unwrap()], 2);
        assert!(complaint.contains("cannot write"), "{complaint}");
    }
}

#[test]
fn a_wrong_file_is_refused_with_its_name_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("mine.toml");
    std::fs::write(&policy, "name = \"mine\"\nquantom = \"30 ms\"\n").unwrap();
    let complaint_of_policy = complaint(&["compare", "--policies", policy.to_str().unwrap()], 2);
    assert!(complaint_of_policy.contains("mine.toml:2") && complaint_of_policy.contains("quantum"));

    let trace = folder.path().join("cut.trace");
    std::fs::write(&trace, "not a trace").unwrap();
    assert!(complaint(&["compare", "--trace", trace.to_str().unwrap()], 2).contains("cut.trace"));
}

#[test]
fn a_trace_that_is_damaged_further_on_ends_the_command_without_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/sort-sources.trace");
    let mut bytes = std::fs::read(shipped).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let (trace, page) = (folder.path().join("damaged.trace"), folder.path().join("page.html"));
    std::fs::write(&trace, bytes).unwrap();
    let arguments = ["compare", "--trace", trace.to_str().unwrap(), "--report", page.to_str().unwrap()];
    let complaint = complaint(&arguments, 1);
    assert!(complaint.contains("damaged.trace: byte ") && complaint.contains("its checksum"), "{complaint}");
    assert!(!page.exists());
}

#[test]
fn this_host_is_a_machine_or_the_error_says_why_it_is_none() {
    let arguments = tiny(&["--machine", "host", "matrix"]);
    let ended = hearth_lab(&arguments).output().unwrap();
    let (said, text) = (String::from_utf8_lossy(&ended.stderr), String::from_utf8_lossy(&ended.stdout));
    match ended.status.code() {
        Some(0) => {
            assert!(text.contains("matrix on this-host") && said.contains("typical ones"), "{text}{said}")
        }
        code => assert!(code == Some(2) && said.starts_with("error: "), "{said}"),
    }
}

#[test]
fn a_policy_named_twice_is_refused() {
    assert!(
        complaint(&["compare", "--policies", "light,standard,light"], 2)
            .contains("two policies called light")
    );
}

fn spawn(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hearth-lab"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = spawn(&tiny(&["--json", "matrix"]));
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn ctrl_c_ends_a_comparison_with_code_130() {
    let mut child = spawn(&["compare", "--jobs", "1"]);
    let pid = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    while !catches_signals(child.id()) {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::yield_now();
    }
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("interrupted"));
}

/// Whether a process has a handler for SIGTERM, signal 15, which `hearth` sets after that for SIGINT.
fn catches_signals(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << 14) != 0
}
