//! The policies that come with the program.

use hearth_machine::MoveCosts;
use hearth_policy::{Credit, Policy, presets};

#[test]
fn every_preset_loads_under_its_own_name() {
    for (name, _) in presets() {
        let policy = Policy::load(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(policy.name, *name);
        assert!(!policy.description.is_empty());
    }
}

#[test]
fn every_preset_survives_being_written_and_read() {
    for (name, _) in presets() {
        let policy = Policy::load(name).expect(name);
        let text = policy.to_toml();
        assert_eq!(Policy::parse(&text, "written").unwrap_or_else(|error| panic!("{error}\n{text}")), policy);
    }
}

#[test]
fn every_file_of_the_policies_folder_is_a_preset() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("policies/")
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    let mut names: Vec<&str> = presets().iter().map(|(name, _)| *name).collect();
    files.sort_unstable();
    names.sort_unstable();
    assert_eq!(files, names);
}

#[test]
fn the_papers_policies_are_points_of_twenty_milliseconds() {
    for (name, a_t, a_p) in [("standard", 0, 0), ("light", 6, 6), ("heavy", 16, 16)] {
        let preset = Policy::load(name).expect(name);
        let made = Policy::affinity(a_t, a_p);
        assert_eq!(
            preset,
            Policy { name: preset.name.clone(), description: preset.description.clone(), ..made }
        );
    }
}

#[test]
fn each_comparison_differs_from_what_it_is_compared_with_in_one_thing() {
    let [standard, light, fair] = ["standard", "light", "fair"].map(|name| Policy::load(name).expect(name));
    let variants = [
        ("plain", Policy { credit: Default::default(), steady: false, ..fair }),
        ("attached", Policy { attached: true, ..standard.clone() }),
        ("quantum-10", Policy { quantum_ns: 10_000_000, ..standard.clone() }),
        ("quantum-100", Policy { quantum_ns: 100_000_000, ..standard }),
        ("complex", Policy { complex: true, fade_permille: 2000, ..light }),
    ];
    for (name, expected) in variants {
        let preset = Policy::load(name).expect(name);
        assert_eq!(
            preset,
            Policy { name: name.to_owned(), description: preset.description.clone(), ..expected }
        );
    }
}

#[test]
fn a_complex_credit_is_gone_after_its_length_over_the_fade() {
    let complex = Policy::load("complex").expect("preset");
    assert_eq!(complex.time_credit_after(0), 120_000_000);
    assert_eq!(complex.time_credit_after(10_000_000), 100_000_000);
    assert_eq!(complex.time_credit_after(60_000_000), 0);
    assert_eq!(complex.time_credit_after(u64::MAX), 0);
}

#[test]
fn the_credits_of_fair_are_what_moves_cost() {
    let fair = Policy::load("fair").expect("preset");
    let given = Credit { fragment_ns: fair.credit.fragment_ns, ..Credit::default() };
    assert_eq!(fair.credit, given);
    assert!(given.fragment_ns <= 2 * fair.quantum_ns);
    let quantum_ns = fair.quantum_ns;
    let expected =
        Credit { time_ns: quantum_ns, processor_ns: quantum_ns, llc_ns: 30, node_ns: 470, ..given };
    assert_eq!(fair.on(MoveCosts { cpu_ns: 2, cache_ns: 30, node_ns: 500 }).credit, expected);
    let own = Policy::load("fair:credit.llc=7ms").expect("a number of one's own");
    assert_eq!(own.on(MoveCosts { cpu_ns: 2, cache_ns: 30, node_ns: 500 }).credit.llc_ns, 7_000_000);
    let light = Policy::load("light").expect("preset");
    assert_eq!(light.on(MoveCosts { cpu_ns: 2, cache_ns: 30, node_ns: 500 }), light, "it is not steady");
}

#[test]
fn a_preset_may_be_named_with_other_numbers() {
    let name = "unix:credit.time=60ms:saturation=none:attached=true";
    let changed = Policy::load(name).expect("numbers that can be");
    let mut expected = Policy { name: name.into(), saturation_ns: None, attached: true, ..load("unix") };
    expected.credit.time_ns = 60_000_000;
    assert_eq!(changed, expected);
    let wrong = ["credit.tim=1ms", "quantum=30", "quantum", "", "credit=1", "fade=2", "credit.time.x=1ms"];
    for change in wrong {
        Policy::load(&format!("light:{change}")).expect_err(change);
    }
    let error = Policy::load("lihgt:quantum=1s").expect_err("no preset").to_string();
    assert!(error.contains("lihgt"), "{error}");
}

fn load(name: &str) -> Policy {
    Policy::load(name).unwrap_or_else(|error| panic!("{error}"))
}
