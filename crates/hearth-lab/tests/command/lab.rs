//! `hearth lab`, whole, on a small experiment.

use crate::{hearth_lab, json, output};
use std::path::{Path, PathBuf};

const EXPERIMENT: &str = r#"
id = "S"
title = "Small"
paper = "Nobody 2000"
machine = "sgi-4d340"
baseline = "standard"

[[claim]]
id = "S1"
kind = "outcome"
text = "the fair policy changes the time of matrix by <nothing> much"
rows = [{ measure = { of = "time_change", workload = "matrix", policy = "light" }, paper = 0.0, low = -50.0, high = 50.0 }]

[[claim]]
id = "S2"
kind = "input"
text = "this cannot hold"
rows = [{ measure = { of = "time_change", workload = "matrix", policy = "light" }, paper = 70.0, low = 60.0 }]
"#;

fn experiment(folder: &Path) -> PathBuf {
    let file = folder.join("small.toml");
    std::fs::write(&file, EXPERIMENT).unwrap();
    file
}

#[test]
fn each_claim_has_a_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(folder.path());
    let arguments = ["lab", file.to_str().unwrap(), "--scale", "0.02"];
    let text = output(&[&arguments[..], &["--verbose"]].concat());
    assert!(
        text.contains(
            "Claims of Nobody 2000 (S) that hold: outcomes 1 of 1, inputs 0 of 1; not holding: S2."
        ),
        "{text}"
    );
    let judged = json(&[&arguments[..], &["--json"]].concat());
    assert_eq!(judged["schema"], 1);
    let claims = judged["claims"].as_array().unwrap();
    let verdicts: Vec<&str> = claims.iter().map(|claim| claim["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["holds", "does not hold"]);
    let rows = output(&[&arguments[..], &["--csv"]].concat());
    let verdicts: Vec<&str> = rows.lines().skip(1).map(|row| row.rsplit(',').next().unwrap()).collect();
    assert_eq!(verdicts, ["holds", "does not hold"], "{rows}");
    for key in ["id", "kind", "paper", "measured", "spread", "band"] {
        assert!(!claims[0][key].is_null(), "{key}");
    }
}

#[test]
fn a_paper_takes_a_line_for_each_claim_and_at_most_25() {
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(folder.path());
    let text = output(&["lab", file.to_str().unwrap(), "--scale", "0.02"]);
    let line = text.lines().find(|line| line.contains("S2")).unwrap();
    assert!(line.contains("does not hold") && line.contains("(paper 70): matrix, time, light"), "{text}");
    assert!(text.contains("that hold: outcomes 1 of 1, inputs 0 of 1.\n"), "{text}");
    assert!(text.lines().last().unwrap().starts_with("Every figure: -v"), "{text}");
    let claim = |number: usize| {
        format!(
            "[[claim]]\nid = \"S{number}\"\nkind = \"outcome\"\ntext = \"x\"\nrows = [{{ measure = {{ of = \"time_change\", workload = \"matrix\", policy = \"light\" }}, low = -50.0 }}]\n"
        )
    };
    let many = EXPERIMENT.to_owned() + &(3..40).map(claim).collect::<String>();
    std::fs::write(&file, many).unwrap();
    let text = output(&["lab", file.to_str().unwrap(), "--scale", "0.02"]);
    assert!(text.lines().count() <= 25 && text.contains("23 more claims are not shown"), "{text}");
}

#[test]
fn only_a_check_fails_when_a_claim_does_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(folder.path());
    let arguments = ["lab", file.to_str().unwrap(), "--scale", "0.02"];
    hearth_lab(&arguments).assert().code(0);
    hearth_lab(&[&arguments[..], &["--check"]].concat()).assert().code(3);
}

#[test]
fn a_page_and_a_document_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(folder.path());
    let (page, document) = (folder.path().join("lab.html"), folder.path().join("lab.md"));
    hearth_lab(&["lab", file.to_str().unwrap(), "--scale", "0.02", "--seeds", "2"])
        .args(["--report", page.to_str().unwrap(), "--markdown", document.to_str().unwrap()])
        .assert()
        .success();
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("&lt;nothing&gt;") && !page.contains("<nothing>"), "text is escaped");
    let document = std::fs::read_to_string(document).unwrap();
    assert!(document.contains("| [S2](#s2) | input | this cannot hold | **does not hold** |"), "{document}");
}

#[test]
fn page_policies_are_tried_on_recorded_runs() {
    let folder = tempfile::tempdir().unwrap();
    let [page, document] = ["pages.html", "pages.md"].map(|name| folder.path().join(name));
    let files = ["--report", page.to_str().unwrap(), "--markdown", document.to_str().unwrap()];
    let arguments = ["lab", "M", "--scale", "0.05", "--json"];
    let judged = json(&[&arguments[..], &files].concat());
    let claims = judged["claims"].as_array().unwrap();
    let ids: Vec<&str> = claims.iter().map(|claim| claim["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["M6", "M1", "M2", "M3", "M4", "M5"]);
    assert!(claims.iter().all(|claim| claim["verdict"] != "not run"));
    let [page, document] = [page, document].map(|file| std::fs::read_to_string(file).unwrap());
    for text in ["Page policies: ocean-8", "Page policies: panel-8", "single-cache"] {
        assert!(page.contains(text) && document.contains(text), "{text}");
    }
    assert_eq!(page.matches("<polyline").count(), 6, "two curves each in figures 14 and 16");
}

/// Each measure of part N, on a workload that starts in a staggered fashion: its lines are as in `N.toml`.
const CLUSTERS: &str = r#"
id = "C"
title = "Clusters"
paper = "Nobody 2001"
machine = "dash-16"
baseline = "standard"
followed = "ocean"

[[claim]]
id = "C1"
kind = "outcome"
text = "everything moves"
rows = [
    { measure = { of = "switch_rate", workload = "WORKLOAD", application = "ocean", policy = "standard", to = "context" }, low = 0.1 },
    { measure = { of = "switch_rate", workload = "WORKLOAD", application = "ocean", policy = "standard", to = "node" }, low = 0.1 },
    { measure = { of = "switches_left", workload = "WORKLOAD", application = "ocean", policy = "both", to = "cpu" }, low = 0.0, high = 50.0 },
    { measure = { of = "response_time", workload = "WORKLOAD", policy = "both" }, low = 0.2, high = 1.1 },
    { measure = { of = "response_spread", workload = "WORKLOAD", policy = "both" }, low = 0.0001, high = 0.5 },
    { measure = { of = "response_minus", workload = "WORKLOAD", policy = "standard+dash", minus = "standard" }, low = 0.01 },
    { measure = { of = "local_rise", workload = "WORKLOAD", policy = "both", over = "standard" }, low = 5.0 },
    { measure = { of = "cpu_time_over", workload = "WORKLOAD", application = "ocean", policy = "both", over = "standard" }, high = -5.0 },
    { measure = { of = "recovery", workload = "WORKLOAD", application = "ocean", policy = "standard+dash" }, low = 0.0, high = 100.0 },
]
"#;

#[test]
fn clusters_are_measured_on_a_staggered_workload_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let [workload, file, page] =
        ["jobs.toml", "clusters.toml", "clusters.html"].map(|name| folder.path().join(name));
    let job = |number: u32| format!("{{ program = \"ocean\", start = \"{} ms\" }},", number * 500);
    let jobs: String = (0..24).map(job).collect();
    let text = format!("name = \"jobs\"\ndescription = \"two dozen oceans\"\njobs = [{jobs}]\n");
    std::fs::write(&workload, text).unwrap();
    std::fs::write(&file, CLUSTERS.replace("WORKLOAD", workload.to_str().unwrap())).unwrap();
    let arguments = ["lab", file.to_str().unwrap(), "--scale", "0.02", "--json"];
    let judged = json(&[&arguments[..], &["--report", page.to_str().unwrap()]].concat());
    for row in judged["claims"][0]["rows"].as_array().unwrap() {
        assert_eq!(row["holds"], true, "{row}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    for text in
        ["Local and remote misses", "Load profile", "CPU time by program", "Pages of ocean on its node"]
    {
        assert!(page.contains(text), "{text}");
    }
}
