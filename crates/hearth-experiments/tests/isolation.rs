//! Figures of the cache-fair paper, and the experiment that turns its rule's switches.

#![allow(clippy::unwrap_used)]

mod common;

use common::judged;
use hearth_experiments::report::{Findings, lab_page};
use hearth_experiments::{Experiment, Figures, Judgement, MissRates, Policies, Principal};
use hearth_report::Source;

const SWITCHES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/F-switches.toml");

#[test]
fn a_page_has_figures_3_to_6_of_each_group() {
    let experiment = Experiment::load("F").unwrap();
    let figures = Figures {
        group: "spec".into(),
        policies: ["fixed", "fixed+cache-fair"].map(String::from),
        miss_rates: vec![MissRates { program: "art".into(), estimated: 4.25, actual: 4.5 }],
        principals: vec![Principal {
            name: "vpr".into(),
            ipc: 0.5,
            variability: [10.5, -1.25],
            times: [[1.0, 1.105], [1.06, 1.05]],
            throughput: 0.985,
        }],
    };
    let (claims, runs, failures) = (Vec::new(), Vec::new(), Vec::new());
    let judgement = Judgement { claims, runs, failures, figures: vec![figures] };
    let findings =
        Findings { experiment: &experiment, judgement: &judgement, scale: 1.0, seeds: &[1], partial: false };
    let page = lab_page(&[findings], &Source::default());
    for wanted in [
        "Performance isolation: spec",
        "Figure 3: fair miss rates. art: estimated 4.25, actual 4.50",
        "Figure 4: variability. vpr: fixed 10.5, fixed+cache-fair -1.25",
        "Figure 5: completion times. vpr: fixed 1.00 to 1.10, fixed+cache-fair 1.06 to 1.05",
        "Figure 6: aggregate instructions for each cycle. vpr: fixed 1.00, fixed+cache-fair 0.985",
    ] {
        assert!(page.contains(wanted), "{wanted} is not in the page");
    }
    let without = Judgement { figures: Vec::new(), ..judgement };
    let findings =
        Findings { experiment: &experiment, judgement: &without, scale: 1.0, seeds: &[1], partial: false };
    assert!(!lab_page(&[findings], &Source::default()).contains("Figure 3"));
}

/// What figures show is what claims measure.
#[test]
fn figures_are_of_the_same_runs_as_claims() {
    let mut experiment = Experiment::load("F").unwrap();
    for group in &mut experiment.groups {
        group.samples_itself = true;
        group.schedules.retain(|schedules| schedules.principal == "twolf");
    }
    let measures = [
        r#"of = "variability", group = "spec", principal = "twolf", policy = "fixed""#,
        r#"of = "variability", group = "spec", principal = "twolf", policy = "fixed+cache-fair""#,
        r#"of = "throughput_change", group = "spec", principal = "twolf", policy = "fixed+cache-fair""#,
    ];
    let rows = measures.map(|measure| format!("{{ measure = {{ {measure} }} }}")).join(", ");
    let group = r#"name = "spec"
        machine = "t1-dual"
        parted = "t1-dual-parted"
        sampled = "twolf"
        sampled_under = "fixed-long"
        schedule = []"#;
    let text = format!(
        "id = \"X\"\ntitle = \"x\"\npaper = \"x\"\nmachine = \"t1-dual\"\nbaseline = \"fixed\"\n[[group]]\n{group}\n\
         [[claim]]\nid = \"X1\"\nkind = \"outcome\"\ntext = \"x\"\nrows = [{rows}]\n"
    );
    experiment.claims = Experiment::parse(&text, "x.toml").unwrap().claims;
    let judgement = judged(&experiment, 0.1, None);
    assert!(judgement.failures.is_empty(), "{:?}", judgement.failures);
    let [figures] = &judgement.figures[..] else { panic!("{:?}", judgement.figures) };
    let [twolf] = &figures.principals[..] else { panic!("{figures:?}") };
    let measured = &judgement.claims[0].measured;
    let shown = [twolf.variability[0], twolf.variability[1], 100.0 * (twolf.throughput - 1.0)];
    assert_eq!(measured.len(), shown.len());
    for (measured, shown) in measured.iter().zip(shown) {
        assert!((measured.unwrap() - shown).abs() < 1e-9, "{measured:?}, {shown}");
    }
    assert_eq!(figures.miss_rates, [], "nobody was sampled with the cache parted");
}

#[test]
fn each_switch_of_the_rule_is_measured_beside_the_paper_s() {
    let experiment = Experiment::load(SWITCHES).unwrap();
    let text = std::fs::read_to_string(SWITCHES).unwrap();
    let rules =
        ["", "-robust", "-one-pays", "-phases", "-no-bus"].map(|name| format!("fixed+cache-fair{name}"));
    for rule in rules {
        assert!(text.contains(&format!("policy = \"{rule}\"")), "{rule}");
        assert!(Policies::load(&rule).is_ok_and(|policies| policies.name() == rule), "{rule}");
    }
    assert!(experiment.claims.iter().all(|claim| claim.rows.iter().any(|row| row.low.is_some())));
}
