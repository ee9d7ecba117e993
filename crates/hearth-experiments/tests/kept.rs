//! A lab that was stopped goes on: what is done is kept.

#![allow(clippy::unwrap_used)]

mod common;

use common::judged;
use hearth_experiments::{Experiment, Judgement, Kept};
use std::fs;
use std::path::PathBuf;

/// Results of each kind: caches alone, pages, a parallel section.
fn experiments() -> Vec<Experiment> {
    [("D", "D5"), ("N", "N3"), ("G", "G3")]
        .map(|(name, id)| {
            let mut experiment = Experiment::load(name).unwrap();
            experiment.claims.retain(|claim| claim.id == id);
            experiment.claims[0].rows.truncate(1);
            Experiment { tables: Vec::new(), programs: Vec::new(), ..experiment }
        })
        .into()
}

fn files(kept: &tempfile::TempDir) -> Vec<PathBuf> {
    fs::read_dir(kept.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn shown(judgement: &Judgement) -> String {
    assert!(judgement.failures.is_empty(), "{:?}", judgement.failures);
    let of_runs = judgement.runs.iter().map(|run| serde_json::to_string(run).unwrap());
    of_runs.chain([format!("{:?}", judgement.claims)]).collect()
}

#[test]
fn a_run_that_is_kept_is_the_run_to_the_last_digit() {
    for experiment in experiments() {
        let folder = tempfile::tempdir().unwrap();
        let without = judged(&experiment, 0.002, None);
        let first = judged(&experiment, 0.002, Some(&Kept::open(folder.path()).unwrap()));
        let kept = Kept::open(folder.path()).unwrap();
        assert_eq!(files(&folder).len(), first.runs.len(), "a file for each run, and no other");
        // As if it had been stopped.
        fs::remove_file(&files(&folder)[0]).unwrap();
        let again = judged(&experiment, 0.002, Some(&kept));
        assert_eq!(kept.taken(), first.runs.len() - 1);
        assert_eq!(shown(&without), shown(&first));
        assert_eq!(shown(&first), shown(&again));
        // Another scale is another run.
        let kept = Kept::open(folder.path()).unwrap();
        judged(&experiment, 0.003, Some(&kept));
        assert_eq!(kept.taken(), 0);
    }
}

/// Of estimates nothing is written but what follows from them.
#[test]
fn what_was_sampled_is_sampled_again() {
    let mut experiment = Experiment::load("F").unwrap();
    experiment.groups[0].sampled = "crafty+mcf+twolf".into();
    experiment.claims.retain(|claim| claim.id == "F1");
    experiment.claims[0].rows.retain(|row| row.measure.name().starts_with("crafty"));
    let folder = tempfile::tempdir().unwrap();
    let judged = || judged(&experiment, 0.002, Some(&Kept::open(folder.path()).unwrap()));
    let first = judged();
    assert!(first.claims[0].measured[0].unwrap() > -100.0, "there is an estimate");
    assert_eq!(shown(&first), shown(&judged()));
}

#[test]
fn what_is_no_run_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = &experiments()[0];
    judged(experiment, 0.002, Some(&Kept::open(folder.path()).unwrap()));
    let broken = files(&folder).remove(0);
    fs::write(&broken, &fs::read(&broken).unwrap()[..100]).unwrap();
    let judgement = judged(experiment, 0.002, Some(&Kept::open(folder.path()).unwrap()));
    let [error] = &judgement.failures[..] else { panic!("{:?}", judgement.failures) };
    let words = error.to_string();
    assert!(words.contains(broken.to_str().unwrap()) && words.contains("delete it"), "{words}");
    let error = Kept::open(&broken).unwrap_err().to_string();
    assert!(error.contains("name a folder that you may write to"), "{error}");
}
