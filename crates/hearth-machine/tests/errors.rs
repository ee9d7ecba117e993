//! What a wrong machine is told: file, line, key, what is wrong and how to mend it.

use hearth_machine::{Machine, MachineError, presets};
use proptest::prelude::*;

fn preset(name: &str) -> &'static str {
    presets().iter().find(|(other, _)| *other == name).expect("preset").1
}

/// The errors of a preset in which `from` has been replaced by `to`, once, for each edit.
fn errors_after(edits: &[(&str, &str, &str)]) -> String {
    let error = |(name, from, to): &(&str, &str, &str)| {
        let text = preset(name);
        assert!(text.contains(from), "{from} is not in {name}");
        let error = Machine::parse(&text.replacen(from, to, 1), "m.toml").expect_err(to);
        assert!(matches!(error, MachineError::Text(_)));
        format!("{name} with {to:?} for {from:?}\n  {error}\n")
    };
    edits.iter().map(error).collect()
}

#[test]
fn an_unknown_key_is_named_with_its_likeliest_spelling() {
    insta::assert_snapshot!(errors_after(&[
        ("sgi-4d340", "size = \"64", "sise = \"64"),
        ("sgi-4d340", "\nrefill", "\ncolour"),
    ]));
}

#[test]
fn a_missing_key_is_named_with_its_table() {
    insta::assert_snapshot!(errors_after(&[
        ("sgi-4d340", "entries = 64\n", ""),
        ("sgi-4d340", "clock = \"33 MHz\"\n", ""),
        ("dash-16", "remote = 101\n", ""),
    ]));
}

#[test]
fn a_wrong_unit_or_none_is_an_error() {
    insta::assert_snapshot!(errors_after(&[
        ("sgi-4d340", "\"33 MHz\"", "33"),
        ("sgi-4d340", "\"33 MHz\"", "\"33 ms\""),
        ("sgi-4d340", "\"64 MB/s\"", "\"64 MB\""),
        ("sgi-4d340", "\"10 ms\"", "\"10 lightyears\""),
        ("sgi-4d340", "\"512 B\" }", "\"512\" }"),
        ("sgi-4d340", "latency = 15", "latency = -15"),
        ("sgi-4d340", "holds = \"data\"", "holds = \"date\""),
        ("sgi-4d340", "\"coloured\"", "\"random\""),
        ("sgi-4d340", "\"coloured\"", "64"),
    ]));
}

#[test]
fn text_that_is_not_toml_is_an_error_at_its_line() {
    insta::assert_snapshot!(errors_after(&[
        ("sgi-4d340", "cpus = 4", "cpus = = 4"),
        ("sgi-4d340", "cpus = 4", "cpus = 4\ncpus = 4"),
    ]));
}

#[test]
fn a_decimal_size_where_a_power_of_two_is_needed_is_explained() {
    insta::assert_snapshot!(errors_after(&[
        ("sgi-4d340", "size = \"64 KiB\"", "size = \"64 KB\""),
        ("server-2s", "ways = 12", "ways = 8"),
        ("sgi-4d340", "line = \"16 B\"", "line = \"24 B\""),
        ("sgi-4d340", "line = \"16 B\"", "line = \"4 B\""),
        ("sgi-4d340", "page = \"4 KiB\"", "page = \"4 GiB\""),
    ]));
}

#[test]
fn caches_that_make_no_sense_are_refused() {
    insta::assert_snapshot!(errors_after(&[
        ("sgi-4d340", "size = \"256 KiB\"", "size = \"64 KiB\""),
        ("sgi-4d340", "latency = 15", "latency = 1"),
        ("sgi-4d340", "holds = \"instructions\"", "holds = \"data\""),
        ("server-2s", "holds = \"both\"", "holds = \"instructions\""),
        ("server-2s", "holds = \"both\"\nsize = \"32", "holds = \"data\"\nsize = \"32"),
        ("server-2s", "name = \"L1d\"", "name = \"L1i\""),
        ("sgi-4d340", "ways = 1", "ways = 0"),
    ]));
}

#[test]
fn caches_are_shared_by_whole_groups_of_cpus_of_one_node() {
    insta::assert_snapshot!(errors_after(&[
        ("sgi-4d340", "latency = 15", "latency = 15\nshared_by = 3"),
        ("sgi-4d340", "ways = 1", "ways = 1\nshared_by = 2"),
        ("server-2s", "shared_by = 16", "shared_by = 32"),
        ("server-2s", "latency = 15", "latency = 15\nshared_by = 32"),
        ("chiplet-64", "latency = 14", "latency = 14\nshared_by = 16"),
    ]));
}

#[test]
fn a_machine_has_cpus_and_memory_within_bounds() {
    insta::assert_snapshot!(errors_after(&[
        ("sgi-4d340", "cpus = 4", "cpus = 0"),
        ("sgi-4d340", "cpus = 4", "cpus = 513"),
        ("sgi-4d340", "\"64 MiB\"", "\"0 B\""),
        ("sgi-4d340", "\"64 MiB\"", "\"65 GiB\""),
        ("sgi-4d340", "\"64 MiB\"", "\"64001 KB\""),
        ("dash-16", "count = 4", "count = 100"),
        ("dash-16", "cpus = 4", "cpus = 200"),
        ("server-2s", "count = 2\ncpus = 16", "count = 2\ncpus = 1"),
    ]));
}

#[test]
fn latencies_grow_outwards_and_kernel_values_are_within_bounds() {
    insta::assert_snapshot!(errors_after(&[
        ("sgi-4d340", "local = 35", "local = 15"),
        ("dash-16", "remote = 101", "remote = 13"),
        ("dash-16", "remote_modified = 132", "remote_modified = 100"),
        ("dash-16", "link = \"120 MB/s\"", "link = \"120 B/s\""),
        ("sgi-4d340", "local = 35", "local = 35\nlink = \"120 MB/s\""),
        ("sgi-4d340", "wired = 8", "wired = 64"),
        ("sgi-4d340", "\"random\"", "\"lru\""),
        ("sgi-4d340", "local = 35", "local = 35\nremote = 70"),
        ("sgi-4d340", "cache_to_cache = 35", "cache_to_cache = 3"),
        ("sgi-4d340", "tick = \"10 ms\"", "tick = \"0 ms\""),
        ("sgi-4d340", "io_interrupt_cpu = 0", "io_interrupt_cpu = 4"),
        ("sgi-4d340", "parallel = 2", "parallel = 0"),
        ("sgi-4d340", "parallel = 2", "parallel = 2, node = 1"),
        ("sgi-4d340", "[kernel]", "[kernel]\npage_move = { cycles = 1 }"),
        ("sgi-4d340", "\"4 KiB\", shared", "\"4 GiB\", shared"),
        ("sgi-4d340", "name = \"sgi-4d340\"", "name = \"../sgi\""),
    ]));
}

#[test]
fn an_empty_file_lacks_its_first_key() {
    let error = Machine::parse("", "m.toml").expect_err("empty").to_string();
    assert_eq!(error, "m.toml:1: `name` is missing; add `name` to this table");
}

#[test]
fn a_name_that_is_no_preset_and_no_file_lists_the_presets() {
    let error = Machine::load("no-such-machine").expect_err("missing").to_string();
    assert_eq!(
        error,
        "no-such-machine: cannot read this machine: No such file or directory (os error 2); name a readable TOML file \
         or one of: sgi-4d340, dash-16, xeon-smp2, t1-dual, t1-dual-parted, t1-dual-free, t1-dual-512, desktop-8, server-2s, chiplet-64"
    );
}

/// Values that have broken parsers before.
fn odd_value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>().prop_map(|value| format!("{value:?}")),
        (any::<u64>(), "[A-Za-z/ ]{0,6}").prop_map(|(value, unit)| format!("\"{value} {unit}\"")),
        (
            0_u64..1 << 40,
            prop::sample::select(vec!["B", "KiB", "MiB", "GiB", "EiB", "MHz", "ms", "us", "years", "MB/s"])
        )
            .prop_map(|(value, unit)| format!("\"{value} {unit}\"")),
        Just("{}".to_owned()),
        Just("[[]]".to_owned()),
        Just("\"\\u0000é\"".to_owned()),
        "\\PC{0,8}",
    ]
}

proptest! {
    #[test]
    fn no_value_at_any_key_makes_the_parser_panic(index in 0..presets().len(), line in any::<prop::sample::Index>(), value in odd_value()) {
        let mut lines: Vec<String> = presets()[index].1.lines().map(str::to_owned).collect();
        let line = line.index(lines.len());
        if let Some((key, _)) = lines[line].clone().split_once('=') {
            lines[line] = format!("{key}= {value}");
        }
        let text = lines.join("\n");
        if let Ok(machine) = Machine::parse(&text, "m.toml") {
            prop_assert_eq!(Machine::parse(&machine.to_toml(), "again").expect("written"), machine);
        }
    }

    #[test]
    fn no_mutation_of_the_text_makes_the_parser_panic(index in 0..presets().len(), cuts in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..40, "\\PC{0,6}"), 1..4)) {
        let mut text: Vec<char> = presets()[index].1.chars().collect();
        for (at, length, insert) in cuts {
            let at = at.index(text.len());
            let end = text.len().min(at + length);
            text.splice(at..end, insert.chars());
        }
        let text: String = text.into_iter().collect();
        let _ = Machine::parse(&text, "m.toml");
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        prop_assert!(Machine::parse(&text, "m.toml").is_err());
    }
}
