//! A claim can fail: put what it is about out of the way, and it does not hold.

#![allow(clippy::unwrap_used)]

mod common;

use common::judged;
use hearth_experiments::{Claim, Experiment, Kind, Row, Verdict};

/// Four time steps of ocean, and a quarter of the other programs. Process control needs them whole: a shorter
/// panel has so little to do at once that 8 CPUs alone are a gain.
fn scale(claim: &Claim) -> f64 {
    if claim.id == "G6" { 1.0 } else { 0.25 }
}

#[test]
fn no_claim_about_data_affinity_holds_of_its_mutant() {
    let experiment = Experiment::load("D").unwrap();
    let mutated = experiment.mutated();
    assert_eq!(mutated.claims.len(), experiment.claims.len(), "each claim has a mutant");
    let judgement = judged(&mutated, 0.002, None);
    assert!(judgement.failures.is_empty(), "{:?}", judgement.failures);
    let alive = judgement.claims.iter().filter(|claim| claim.verdict != Verdict::DoesNotHold);
    let alive: Vec<_> = alive.map(|claim| (&claim.id, &claim.measured)).collect();
    assert!(alive.is_empty(), "{alive:?}");
}

#[test]
fn no_claim_about_isolation_holds_of_its_mutant() {
    let experiment = Experiment::load("F").unwrap();
    let mut mutated = experiment.mutated();
    assert_eq!(mutated.claims.len(), experiment.claims.len(), "each claim has a mutant");
    let has_band = |row: &Row| row.low.is_some() || row.high.is_some();
    mutated.claims.iter_mut().for_each(|claim| claim.rows.retain(has_band));
    let judgement = judged(&mutated, 0.1, None);
    assert!(judgement.failures.is_empty(), "{:?}", judgement.failures);
    let alive = judgement.claims.iter().filter(|claim| claim.verdict != Verdict::DoesNotHold);
    let alive: Vec<_> = alive.map(|claim| (&claim.id, &claim.measured)).collect();
    assert!(alive.is_empty(), "{alive:?}");
}

#[test]
fn no_claim_about_parallel_jobs_holds_of_its_mutant() {
    let experiment = Experiment::load("G").unwrap();
    let mut mutated = Experiment { programs: Vec::new(), ..experiment.mutated() };
    let has_band = |row: &Row| row.low.is_some() || row.high.is_some();
    mutated.claims.iter_mut().for_each(|claim| claim.rows.retain(has_band));
    let outcomes = experiment.claims.iter().filter(|claim| claim.kind == Kind::Outcome);
    assert_eq!(mutated.claims.len(), outcomes.count(), "each outcome has a mutant");
    for scale_of_claims in [0.25, 1.0] {
        let claims = mutated.claims.iter().filter(|claim| scale(claim) == scale_of_claims).cloned().collect();
        let mutated = Experiment { claims, ..mutated.clone() };
        let judgement = judged(&mutated, scale_of_claims, None);
        assert!(judgement.failures.is_empty(), "{:?}", judgement.failures);
        let alive = judgement.claims.iter().filter(|claim| claim.verdict != Verdict::DoesNotHold);
        let alive: Vec<_> = alive.map(|claim| (&claim.id, &claim.measured)).collect();
        assert!(alive.is_empty(), "{alive:?}");
    }
}

/// All claims of an experiment whose outcomes have mutants, but for some that no mechanism of ours is in.
/// Claims in `longer` need runs of a few seconds: in less, two switches between clusters are all there are.
fn check_mutants(id: &str, scale: f64, longer: &[&str], without: &[&str]) {
    let experiment = Experiment::load(id).unwrap();
    let mut mutated = experiment.mutated();
    let has_mutant = |claim: &&Claim| mutated.claims.iter().any(|mutant| mutant.id == claim.id);
    let outcomes = experiment.claims.iter().filter(|claim| claim.kind == Kind::Outcome);
    let without_one: Vec<_> = outcomes.filter(|claim| !has_mutant(claim)).map(|claim| &claim.id).collect();
    assert_eq!(without_one, without, "each other outcome has a mutant");
    let has_band = |row: &Row| row.low.is_some() || row.high.is_some();
    mutated.claims.iter_mut().for_each(|claim| claim.rows.retain(has_band));
    let (long, short) = mutated.claims.iter().cloned().partition(|claim| longer.contains(&claim.id.as_str()));
    for (claims, scale) in [(long, 0.2), (short, scale)] {
        let judgement = judged(&Experiment { claims, ..mutated.clone() }, scale, None);
        assert!(judgement.failures.is_empty(), "{:?}", judgement.failures);
        let alive = judgement.claims.iter().filter(|claim| claim.verdict != Verdict::DoesNotHold);
        let alive: Vec<_> = alive.map(|claim| (&claim.id, claim.verdict, &claim.measured)).collect();
        assert!(alive.is_empty(), "{alive:?}");
    }
}

#[test]
fn no_claim_about_cache_affinity_holds_of_its_mutant() {
    check_mutants("T", 0.05, &["T13"], &[]);
}

#[test]
fn no_claim_about_clusters_holds_of_its_mutant() {
    check_mutants("N", 0.02, &["N10"], &[]);
}

/// The first three are about programs' misses, which no policy has a part in.
#[test]
fn no_claim_about_page_policies_holds_of_its_mutant() {
    check_mutants("M", 0.05, &[], &["M1", "M2", "M3"]);
}
