//! `hearth observe` in kernels with sched_ext and without, on CPUs that have no counters.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Shared, assert_untroubled};
use hearth_guest::{Kernel, Output};

const SCRIPT: &str = r#"
section text
hearth observe -- sh -c 'for turn in 1 2 3 4 5; do usleep 10000; done; exit 3'; echo status=$?
section host
hearth observe --for 200ms --tasks --verbose; echo status=$?
section gone
hearth observe --pid 99999; echo status=$?
"#;

fn shows_what_needs_no_counters(output: &Output) {
    let lines = |section: &str| &output.section(section).unwrap().lines;
    let text = lines("text");
    let row = text.iter().find(|line| line.starts_with(" sh ")).unwrap_or_else(|| panic!("{text:#?}"));
    assert!(row.split_whitespace().nth(3).unwrap().parse::<u64>().unwrap() >= 1, "{row}");
    for words in
        ["the counter cycles is not there", "without hardware counters", "Observing took", "status=3"]
    {
        assert!(text.iter().any(|line| line.contains(words)), "{words} is missing: {text:#?}");
    }
    assert!(lines("host").iter().any(|line| line == "status=0"), "{:#?}", lines("host"));
    assert!(lines("gone").iter().any(|line| line == "status=2"), "{:#?}", lines("gone"));
    assert_untroubled(output);
}

#[test]
fn a_kernel_with_sched_ext_is_observed() {
    static GUEST: Shared = Shared::new();
    let Some(output) = GUEST.output(SCRIPT, Kernel::Pinned) else { return };
    shows_what_needs_no_counters(output);
}

#[test]
fn a_kernel_without_sched_ext_is_observed() {
    static GUEST: Shared = Shared::new();
    let Some(output) = GUEST.output(SCRIPT, Kernel::Plain) else { return };
    shows_what_needs_no_counters(output);
}
