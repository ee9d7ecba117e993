//! `hearth lab`, whole, on a small experiment.

use crate::{hearth, json, output};
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
    let text = output(&arguments);
    assert!(text.contains("1 of 2 claims of Nobody 2000 (S) hold; not holding: S2."), "{text}");
    let judged = json(&[&arguments[..], &["--json"]].concat());
    assert_eq!(judged["schema"], 1);
    let claims = judged["claims"].as_array().unwrap();
    let verdicts: Vec<&str> = claims.iter().map(|claim| claim["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["holds", "does not hold"]);
    for key in ["id", "kind", "paper", "measured", "spread", "band"] {
        assert!(!claims[0][key].is_null(), "{key}");
    }
}

#[test]
fn only_a_check_fails_when_a_claim_does_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(folder.path());
    let arguments = ["lab", file.to_str().unwrap(), "--scale", "0.02"];
    hearth(&arguments).assert().code(0);
    hearth(&[&arguments[..], &["--check"]].concat()).assert().code(3);
}

#[test]
fn a_page_and_a_document_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(folder.path());
    let (page, document) = (folder.path().join("lab.html"), folder.path().join("lab.md"));
    hearth(&["lab", file.to_str().unwrap(), "--scale", "0.02", "--seeds", "2"])
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
    assert_eq!(ids, ["M1", "M2", "M3", "M4", "M5"]);
    assert!(claims.iter().all(|claim| claim["verdict"] != "not run"));
    let [page, document] = [page, document].map(|file| std::fs::read_to_string(file).unwrap());
    for text in ["Page policies: ocean-8", "Page policies: panel-8", "single-cache"] {
        assert!(page.contains(text) && document.contains(text), "{text}");
    }
    assert_eq!(page.matches("<polyline").count(), 6, "two curves each in figures 14 and 16");
}
