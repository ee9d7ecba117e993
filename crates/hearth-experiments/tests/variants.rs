//! A verdict that hangs on what a paper does not say is fragile, and says on what.

#![allow(clippy::unwrap_used)]

mod common;

use common::Silent;
use hearth_experiments::{Experiment, Runner, Verdict, judge_with_variants};

/// Tasks that only compute change places as often as the quantum says.
const EXPERIMENT: &str = r#"
id = "X"
title = "Quanta"
paper = "nobody"
machine = "sgi-4d340"
baseline = "standard"

[[variant]]
name = "short quanta"
policies = "quantum=10ms"

[[variant]]
name = "other frames"
frames = "shuffled"

[[variant]]
name = "other ticks"
ticks = "apart"

[[variant]]
name = "daemons"
beside = "daemons"

[[claim]]
id = "X1"
kind = "outcome"
text = "few switches"
rows = [{ measure = { of = "switch_rate", workload = "spin+spin+spin+spin+spin+spin+spin+spin", application = "spin", policy = "standard", to = "context" }, high = 40.0 }]

[[claim]]
id = "X2"
kind = "outcome"
text = "some switches"
rows = [{ measure = { of = "switch_rate", workload = "spin+spin+spin+spin+spin+spin+spin+spin", application = "spin", policy = "standard", to = "context" }, low = 1.0 }]
"#;

#[test]
fn a_variant_that_turns_a_verdict_is_named() {
    let experiment = Experiment::parse(EXPERIMENT, "x.toml").unwrap();
    let runner = Runner { threads: 2, kept: None, progress: &Silent, stop: None };
    let judgement = judge_with_variants(&experiment, 0.1, &[1], &runner).unwrap();
    assert!(judgement.failures.is_empty(), "{:?}", judgement.failures);
    let [few, some] = &judgement.claims[..] else { panic!("two claims") };
    assert_eq!((few.verdict, few.fragile), (Verdict::Holds, true), "{few:?}");
    assert_eq!(few.turned_by(), ["short quanta"]);
    assert_eq!((some.verdict, some.fragile), (Verdict::Holds, false), "{some:?}");
    let verdicts: Vec<_> = few.variants.iter().map(|variant| variant.verdict).collect();
    assert_eq!(verdicts, [Verdict::DoesNotHold, Verdict::Holds, Verdict::Holds, Verdict::Holds]);
}

#[test]
fn variants_are_read_with_the_experiment_and_wrong_ones_refused() {
    for (name, variants) in [("T", 5), ("N", 5), ("D", 0)] {
        assert_eq!(Experiment::load(name).unwrap().variants.len(), variants, "{name}");
    }
    for (from, to, wanted) in [
        ("quantum=10ms", "quantum=10", "x.toml:8: variant[0]: "),
        ("frames = \"shuffled\"", "", "varies nothing"),
        ("frames =", "farmes =", "did you mean `frames`?"),
        ("ticks = \"apart\"", "ticks = \"never\"", "may be one of: in-step, apart"),
        ("beside = \"daemons\"", "beside = \"matrix\"", "x.toml:20: variant[3]: what runs beside has no end"),
    ] {
        let error = Experiment::parse(&EXPERIMENT.replacen(from, to, 1), "x.toml").unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}
