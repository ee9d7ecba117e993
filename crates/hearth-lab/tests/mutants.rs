//! A claim can fail: put what it is about out of the way, and it does not hold.

#![allow(clippy::unwrap_used)]

mod common;

use common::judged;
use hearth_lab::{Claim, Experiment, Row, Verdict};

/// One time step of ocean, and a quarter of the other programs. Process control needs them whole: a shorter
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
    assert_eq!(mutated.claims.len(), experiment.claims.len(), "each claim has a mutant");
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
