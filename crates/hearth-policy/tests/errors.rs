//! What a wrong policy is told: file, line, key, what is wrong and how to mend it.

use hearth_policy::{ClassNames, Credit, Discipline, Policy, PolicyError, presets};
use proptest::prelude::*;

fn preset(name: &str) -> &'static str {
    presets().iter().find(|(other, _)| *other == name).expect("preset").1
}

/// The errors of a preset in which `from` has been replaced by `to`, once, for each edit.
fn errors_after(edits: &[(&str, &str, &str)]) -> String {
    let error = |(name, from, to): &(&str, &str, &str)| {
        let text = preset(name);
        assert!(text.contains(from), "{from} is not in {name}");
        let error = Policy::parse(&text.replacen(from, to, 1), "p.toml").expect_err(to);
        assert!(matches!(error, PolicyError::Text(_)));
        format!("{name} with {to:?} for {from:?}\n  {error}\n")
    };
    edits.iter().map(error).collect()
}

#[test]
fn unknown_and_missing_keys_and_wrong_units_are_located() {
    insta::assert_snapshot!(errors_after(&[
        ("light", "\nprocessor", "\nprocesor"),
        ("light", "\nquantum", "\nslice"),
        ("light", "discipline = \"system-v\"\n", ""),
        ("light", "\"system-v\"", "\"linux\""),
        ("light", "quantum = \"30 ms\"", "quantum = 30"),
        ("light", "time = \"120 ms\"", "time = \"6 points\""),
        ("light", "[credit]", "[credit"),
    ]));
}

#[test]
fn values_out_of_bounds_are_refused() {
    insta::assert_snapshot!(errors_after(&[
        ("light", "quantum = \"30 ms\"", "quantum = \"0 ms\""),
        ("light", "decay = \"1 s\"", "decay = \"1 us\""),
        ("unix", "saturation = \"800 ms\"", "saturation = \"1 ms\""),
        ("light", "time = \"120 ms\"", "time = \"2 hours\""),
        ("light", "name = \"light\"", "name = \"a policy\""),
        ("complex", "fade = 2.0", "fade = 0.0"),
        ("complex", "fade = 2.0", "fade = -1.0"),
        ("complex", "fade = 2.0", "fade = nan"),
        ("complex", "fade = 2.0", "fade = 1e300"),
        ("complex", "fade = 2.0", "fade = 0.0001"),
        ("complex", "fade = 2.0", "fade = \"fast\""),
    ]));
}

#[test]
fn numbers_that_would_have_the_watchdog_end_the_scheduler_are_refused() {
    insta::assert_snapshot!(errors_after(&[
        ("fair", "quantum = \"3 ms\"", "quantum = \"10 s\""),
        ("fair", "fragment = \"4 ms\"", "time = \"2001 ms\""),
        ("light", "processor = \"120 ms\"", "processor = \"100 s\""),
        ("light", "time = \"120 ms\"", "time = \"2 s\"\nnode = \"2 s\""),
    ]));
}

#[test]
fn the_longest_quantum_and_the_largest_credits_are_within_bounds() {
    let second = 1_000_000_000;
    let credit = Credit { time_ns: 2 * second, processor_ns: 2 * second, ..Credit::default() };
    Policy { quantum_ns: second, credit, ..Policy::affinity(0, 0) }.check().expect("sensible");
}

#[test]
fn contradictions_are_refused() {
    insta::assert_snapshot!(errors_after(&[
        ("complex", "fade = 2.0", ""),
        ("complex", "complex = true", ""),
        ("complex", "time = \"120 ms\"", ""),
        ("fair", "\nquantum", "\ndecay = \"1 s\"\nquantum"),
        ("both", "\nquantum", "\nsteady = true\nquantum"),
        ("fixed", "\nquantum", "\nsaturation = \"1 s\"\nquantum"),
        ("fair", "\nquantum", "\nattached = true\nquantum"),
        ("complex", "\"system-v\"\nquantum = \"30 ms\"\ndecay = \"1 s\"", "\"fair\"\nquantum = \"30 ms\""),
        ("attached", "attached = true", "attached = true\n[credit]\nprocessor = \"1 ms\""),
        ("kernel", "quantum = \"0.7 ms\"", "quantum = \"0.7 ms\"\n[credit]\nllc = \"1 ms\""),
    ]));
}

#[test]
fn the_kernels_own_scheduler_is_for_the_simulated_machine_only() {
    for (name, _) in presets() {
        let policy = Policy::load(name).expect("preset");
        assert_eq!(policy.not_live().is_some(), *name == "kernel", "{name}");
    }
}

#[test]
fn classes_that_cannot_be_are_refused() {
    let fragment = "\nfragment = \"4 ms\"\n";
    let with = |table: &str| format!("{fragment}[isolation]\n{table}\n");
    let tables = [
        "cache-fare = [\"web.service\"]",
        "cache-fair = \"web.service\"",
        "cache-fair = [\"web.service\", \"\"]",
        "best-effort = [\"/\"]",
        "cache-fair = [\"/a\", \"web.service\"]\nbest-effort = [\n  \"/b\",\n  \"web.service\",\n]",
    ]
    .map(with);
    let edits: Vec<_> = tables.iter().map(|table| ("fair", fragment, table.as_str())).collect();
    insta::assert_snapshot!(errors_after(&edits));
}

#[test]
fn a_name_that_is_no_preset_and_no_file_lists_the_presets() {
    let error = Policy::load("no-such-policy").expect_err("missing").to_string();
    assert!(error.ends_with(
        "name a readable TOML file or one of: standard, light, heavy, complex, attached, quantum-10, quantum-100, \
         unix, bsd, cluster, cache, both, fair, plain, kernel, vanilla, fixed, fixed-long, data-affinity"
    ));
}

#[test]
fn an_unchecked_policy_put_together_in_code_can_be_checked() {
    let light = Policy::affinity(6, 6);
    light.check().expect("sensible");
    let beyond = Policy { quantum_ns: u64::MAX, ..light.clone() };
    assert_eq!(beyond.check().expect_err("too long").key, "quantum");
    let faded = Policy { fade_permille: 2000, ..light.clone() };
    assert_eq!(faded.check().expect_err("not complex").key, "fade");
    let unfaded = Policy { complex: true, ..light };
    assert_eq!(unfaded.check().expect_err("no fade").key, "fade");
}

#[test]
fn a_policy_without_credits_needs_no_table() {
    assert_eq!(Policy::load("standard").expect("preset").credit, Credit::default());
}

proptest! {
    #[test]
    fn every_policy_that_passes_its_check_survives_being_written_and_read(
        discipline in prop::sample::select(Discipline::ALL.to_vec()),
        saturation_ms in prop::option::of(10_u64..1_000_000),
        quantum_us in 100_u64..1_000_000,
        credits in prop::array::uniform5(1_u64..800_000_000),
        fade_permille in prop::option::of(1_u32..1_000_000),
        attached in any::<bool>(),
        steady in any::<bool>(),
        cache_fair in prop::collection::vec("[a-z/.:\"]{6,9}", 0..3),
        best_effort in prop::collection::vec("[A-Z/.]{2,5}", 0..3),
    ) {
        let searches = discipline.has_run_queue();
        let attached = attached && searches;
        let fade_permille = fade_permille.filter(|_| searches);
        let kept = |credit: u64| if attached { 0 } else { credit };
        let [time_ns, near @ ..] = credits;
        let [processor_ns, llc_ns, node_ns, fragment_ns] = near.map(kept);
        let policy = Policy {
            discipline,
            saturation_ns: saturation_ms.filter(|_| searches).map(|ms| ms * 1_000_000),
            quantum_ns: quantum_us * 1000,
            credit: Credit { time_ns, processor_ns, llc_ns, node_ns, fragment_ns },
            complex: fade_permille.is_some(),
            fade_permille: fade_permille.unwrap_or(0),
            attached,
            steady: steady && discipline == Discipline::Fair,
            isolation: ClassNames { cache_fair, best_effort },
            ..Policy::affinity(6, 6)
        };
        policy.check().expect("sensible");
        prop_assert_eq!(Policy::parse(&policy.to_toml(), "written").expect("readable"), policy);
    }

    #[test]
    fn no_mutation_of_the_text_makes_the_parser_panic(
        index in 0..presets().len(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..40, "\\PC{0,6}"), 1..4),
    ) {
        let mut text: Vec<char> = presets()[index].1.chars().collect();
        for (at, length, insert) in cuts {
            let at = at.index(text.len());
            let end = text.len().min(at + length);
            text.splice(at..end, insert.chars());
        }
        let text: String = text.into_iter().collect();
        let _ = Policy::parse(&text, "p.toml");
    }
}
