//! What users give the library: variables, and a file that describes another machine.

#![allow(clippy::unwrap_used)]

mod common;

use common::Run;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn switched_off_nothing_is_done() {
    let mut run = Run::begin_with("HEARTH_FRAGMENTS", "off");
    run.order("enter 1");
    assert_eq!((run.ask("fragment"), run.ask("home 1")), (0, -1));
    run.order("leave");
    run.order("leave");
    assert_eq!((run.count("enters"), run.count("unmatched")), (0, 0));
    assert_eq!(run.end(), "");
}

#[test]
fn explained_is_where_fragments_are() {
    let mut run = Run::begin_with("HEARTH_FRAGMENTS", "explain");
    run.order("work 77 100");
    let said = run.end();
    assert!(said.contains("hearth: 1 enters") && said.contains("fragment 0x4d"), "{said}");
}

#[test]
fn a_topology_that_cannot_be_read_is_named_and_switches_off() {
    for (text, says) in [
        ("0-3\n\n4,x\n", "line 3: \"x\""),
        ("3-1", "no list of"),
        ("0-9999999999999999999999", "no list of"),
        ("1024", "CPUs below 1024"),
        ("-1", "no list of"),
        ("# none\n", "has no CPU"),
        ("", "has no CPU"),
    ] {
        let mut run = Run::on(text);
        run.order("enter 1");
        assert_eq!((run.ask("home 1"), run.ask("fragment")), (-1, 0), "{text:?}");
        let said = run.end();
        assert!(said.contains(says) && said.contains("data affinity is off"), "{text:?}: {said}");
    }
    let mut run = Run::begin_with("HEARTH_TOPOLOGY", "/nowhere");
    assert_eq!(run.ask("home 1"), -1);
    assert!(run.end().contains("/nowhere cannot be read"));
}

/// A list of CPUs as the kernel writes it, with what people may put around.
fn list() -> impl Strategy<Value = (String, BTreeSet<i64>)> {
    let ranges = prop::collection::vec((0..1024_i64, 0..40_i64), 1..8);
    (ranges, "[ \t,\r\n]{1,3}", "( *# [ -~]*)?").prop_map(|(ranges, between, comment)| {
        let last = |first: i64, more: i64| (first + more).min(1023);
        let texts: Vec<_> = ranges
            .iter()
            .map(|&(first, more)| match last(first, more) {
                end if end == first => first.to_string(),
                end => format!("{first}-{end}"),
            })
            .collect();
        let cpus = ranges.iter().flat_map(|&(first, more)| first..=last(first, more)).collect();
        (texts.join(&between) + &comment, cpus)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn homes_are_the_cpus_that_a_file_lists((text, cpus) in list()) {
        let mut run = Run::on(&text);
        let count = cpus.len().min(300);
        run.order(&format!("many 1 {count}"));
        let homes: BTreeSet<i64> = (1..=count).map(|fragment| run.ask(&format!("home {fragment}"))).collect();
        prop_assert!(homes.len() == count && homes.is_subset(&cpus), "{:?}", homes);
        prop_assert_eq!(run.end(), "");
    }

    /// It switches data affinity off, and says so; or it lists CPUs after all.
    #[test]
    fn no_file_does_harm(text in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        "[0-9,# \n-]{0,5000}".prop_map(String::into_bytes),
    ]) {
        let mut run = Run::on_bytes(&text);
        run.order("enter 1");
        let home = run.ask("home 1");
        prop_assert_eq!(home >= 0, run.ask("fragment") == 1);
        prop_assert!(home < 1024);
        prop_assert_eq!(home < 0, run.end().contains("data affinity is off"));
    }

    /// Any other than those that are known is said, and changes nothing.
    #[test]
    fn no_variable_does_harm(value in "[^\\x00]{0,40}") {
        let mut run = Run::begin_with("HEARTH_FRAGMENTS", &value);
        run.order("enter 1");
        prop_assert_eq!(run.ask("fragment"), i64::from(value != "off"));
        let said = run.end();
        prop_assert_eq!(said.contains("is neither off nor explain"), !["", "off", "explain"].contains(&&*value));
    }

    #[test]
    fn a_name_is_one_number_and_another_name_another(name in any::<String>(), other in "[a-z]{0,9}") {
        let number = |name: &str| hearth_hints::fragment_named(name);
        prop_assert!(number(&name) >> 63 == 1);
        prop_assert_eq!(number(&name), number(&name.clone()));
        prop_assert!(name.starts_with(&other) || number(&name) != number(&other));
    }
}
