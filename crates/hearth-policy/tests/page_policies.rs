//! The page policies that come with the program, and what a wrong one is told.

use hearth_policy::pages::{Cost, Defrost, Freeze, Misses, PagePolicy, Quota, Rule, page_presets};
use proptest::prelude::*;

fn preset(name: &str) -> PagePolicy {
    PagePolicy::load(name).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_preset_loads_under_its_own_name_and_survives_being_written_and_read() {
    for (name, _) in page_presets() {
        let policy = preset(name);
        assert_eq!(policy.name, *name);
        assert!(!policy.description.is_empty());
        let text = policy.to_toml();
        assert_eq!(
            PagePolicy::parse(&text, "written").unwrap_or_else(|error| panic!("{error}\n{text}")),
            policy
        );
    }
}

#[test]
fn every_file_of_the_folder_is_a_preset() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/pages");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("policies/pages/")
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    let mut names: Vec<&str> = page_presets().iter().map(|(name, _)| *name).collect();
    files.sort_unstable();
    names.sort_unstable();
    assert_eq!(files, names);
}

#[test]
fn the_papers_policies_have_the_papers_numbers() {
    let once = Freeze { on_move: true, on_local: false, defrost: Defrost::Never };
    let second = Freeze { on_move: true, on_local: true, defrost: Defrost::Each(1_000_000_000) };
    let consecutive = |misses, threshold, select| Rule::Consecutive { misses, threshold, select };
    for (name, rule, freeze) in [
        ("none", Rule::Never, Freeze::NONE),
        ("post-facto", Rule::PostFacto, Freeze::NONE),
        ("competitive", Rule::Competitive { misses: Misses::Cache, threshold: 1000 }, Freeze::NONE),
        ("single-cache", consecutive(Misses::Cache, 1, 0), once),
        ("single-tlb", consecutive(Misses::Tlb, 1, 0), once),
        ("freeze", consecutive(Misses::Tlb, 4, 0), second),
        ("hybrid", consecutive(Misses::Tlb, 1, 500), second),
        (
            "dash",
            consecutive(Misses::Tlb, 1, 0),
            Freeze { on_local: false, defrost: Defrost::Together(1_000_000_000), ..second },
        ),
    ] {
        let policy = preset(name);
        assert_eq!((policy.rule, policy.freeze), (rule, freeze), "{name}");
        assert_eq!((policy.quota, policy.cost), (None, None), "{name}");
    }
}

#[test]
fn only_policies_that_may_move_a_page_say_so() {
    let movers: Vec<&str> =
        page_presets().iter().map(|(name, _)| *name).filter(|name| preset(name).moves_pages()).collect();
    assert_eq!(movers, ["competitive", "single-cache", "single-tlb", "freeze", "hybrid", "dash", "linux"]);
    assert!(!PagePolicy { quota: Some(Quota::Pages(0)), ..preset("freeze") }.moves_pages());
}

#[test]
fn only_the_policy_that_must_know_what_comes_cannot_be_followed_live() {
    let refused: Vec<&str> = page_presets()
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| preset(name).not_live().is_some())
        .collect();
    assert_eq!(refused, ["post-facto"]);
}

/// The errors of a preset in which `from` has been replaced by `to`, once, for each edit.
fn errors_after(edits: &[(&str, &str, &str)]) -> String {
    let error = |(name, from, to): &(&str, &str, &str)| {
        let text = page_presets().iter().find(|(other, _)| other == name).expect("preset").1;
        assert!(text.contains(from), "{from} is not in {name}");
        let error = PagePolicy::parse(&text.replacen(from, to, 1), "p.toml").expect_err(to);
        format!("{name} with {to:?} for {from:?}\n  {error}\n")
    };
    edits.iter().map(error).collect()
}

#[test]
fn unknown_and_missing_keys_and_wrong_units_are_located() {
    insta::assert_snapshot!(errors_after(&[
        ("freeze", "\nthreshold", "\ntreshold"),
        ("freeze", "\nthreshold = 4", ""),
        ("freeze", "\nmisses = \"tlb\"", ""),
        ("freeze", "\nrule = \"consecutive\"", ""),
        ("freeze", "\"consecutive\"", "\"consecutiv\""),
        ("freeze", "\"tlb\"", "\"page\""),
        ("freeze", "defrost = \"1 s\"", "defrost = 1"),
        ("linux", "bandwidth = \"64 MB/s\"", "bandwidth = \"64 MB\""),
        ("linux", "saving = \"60 ns\"", ""),
    ]));
}

#[test]
fn values_out_of_bounds_and_contradictions_are_refused() {
    insta::assert_snapshot!(errors_after(&[
        ("freeze", "threshold = 4", "threshold = 0"),
        ("competitive", "threshold = 1000", "threshold = 40000"),
        ("competitive", "threshold = 1000", "threshold = 1000\nselect = 5"),
        ("freeze", "defrost = \"1 s\"", "defrost = \"1 us\""),
        ("freeze", "on_move = true\non_local = true\n", ""),
        ("dash", "defrost = \"1 s\"\n", ""),
        ("linux", "bandwidth = \"64 MB/s\"", "bandwidth = \"64 MB/s\"\npages = 3"),
        ("linux", "bandwidth = \"64 MB/s\"", ""),
        ("linux", "saving = \"60 ns\"", "saving = \"0 ns\""),
        ("none", "rule = \"never\"", "rule = \"never\"\nthreshold = 4"),
        ("none", "rule = \"never\"", "rule = \"never\"\n[quota]\npages = 4"),
        ("none", "name = \"none\"", "name = \"no pages\""),
    ]));
}

#[test]
fn a_name_that_is_no_preset_and_no_file_lists_the_presets() {
    let error = PagePolicy::load("no-such-policy").expect_err("missing").to_string();
    assert!(error.starts_with("no-such-policy: cannot read this page policy"), "{error}");
    assert!(error.ends_with("freeze, hybrid, dash, linux"), "{error}");
}

prop_compose! {
    fn policies()(
        consecutive in any::<bool>(), cache in any::<bool>(),
        threshold in 1_u32..30_000, select in 0_u32..1000,
        on_move in any::<bool>(), on_local in any::<bool>(),
        period in prop::option::of(1_000_000_u64..1_000_000_000_000), together in any::<bool>(),
        quota in prop::option::of((any::<bool>(), 0_u64..1_000_000_000)),
        cost in prop::option::of((1_u64..1_000_000, 1_u64..1000, 1_000_000_u64..1_000_000_000)),
    ) -> PagePolicy {
        let misses = if cache { Misses::Cache } else { Misses::Tlb };
        let freezes = on_move || on_local;
        PagePolicy {
            name: "any".into(),
            description: "Any".into(),
            rule: if consecutive {
                Rule::Consecutive { misses, threshold, select }
            } else {
                Rule::Competitive { misses, threshold }
            },
            freeze: Freeze { on_move, on_local, defrost: match period.filter(|_| freezes) {
                None => Defrost::Never,
                Some(period) if together => Defrost::Together(period),
                Some(period) => Defrost::Each(period),
            }},
            quota: quota.map(|(pages, most)| if pages { Quota::Pages(most) } else { Quota::Bytes(most) }),
            cost: cost.map(|(move_ns, saving_ns, horizon_ns)| Cost { move_ns, saving_ns, horizon_ns }),
        }
    }
}

proptest! {
    #[test]
    fn every_policy_that_passes_its_check_survives_being_written_and_read(policy in policies()) {
        policy.check().expect("sensible");
        prop_assert_eq!(PagePolicy::parse(&policy.to_toml(), "written").expect("readable"), policy);
    }

    #[test]
    fn no_mutation_of_the_text_makes_the_parser_panic(
        index in 0..page_presets().len(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..40, "\\PC{0,6}"), 1..4),
    ) {
        let mut text: Vec<char> = page_presets()[index].1.chars().collect();
        for (at, length, insert) in cuts {
            let at = at.index(text.len());
            let end = text.len().min(at + length);
            text.splice(at..end, insert.chars());
        }
        let text: String = text.into_iter().collect();
        let _ = PagePolicy::parse(&text, "p.toml");
    }
}
