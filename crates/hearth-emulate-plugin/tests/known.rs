//! Programs whose references are known, in a guest: what the plugin counts is what it must be, to 1 %.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::guest::{Setup, plugin};
use common::known;
use hearth_emulate::counts::{Counts, Region, Task};
use hearth_guest::{Guest, Kernel, Mode, NS_PER_INSTRUCTION};
use hearth_kernel_tests::Once;
use std::path::Path;
use std::{env, fs};

const LINE: u64 = 64;

const SCRIPT: &str = "
hearth-region symbols
section known
set -e
known walk first 16 2000
known walk second 256 64
known walk last 4096 8
known walk memory 65536 2
known move near 256 0 1 2
known move far 256 0 4 2
known share share 1000
known nops nops 2000000
known ask ask
";

fn boot() -> (String, Vec<String>) {
    common::boot(Mode::Deterministic, SCRIPT)
}

/// One boot for all tests; nothing, with the reason printed, where no guest can boot.
fn booted() -> Option<&'static (String, Vec<String>)> {
    static BOOTED: Once<(String, Vec<String>)> = Once::named("known");
    common::can_boot().then(|| BOOTED.get(boot))
}

/// A value of the line that begins with a word.
fn said(lines: &[String], word: &str, key: &str) -> u64 {
    let line = lines.iter().find(|line| line.split(' ').next() == Some(word)).unwrap();
    let values = line.split(' ').filter_map(|word| word.split_once('='));
    values.into_iter().find(|(name, _)| *name == key).unwrap().1.parse().unwrap()
}

fn region(name: &str) -> Option<Region> {
    Some(common::region(&booted()?.0, name))
}

/// Within 1 % of `all`, and a little for what interrupts do.
fn check_of(all: u64, what: &str, counted: u64, expected: u64) {
    let allowed = all / 100 + 30;
    assert!(counted.abs_diff(expected) <= allowed, "{what}: {counted} counted, {expected} expected");
}

fn check(what: &str, counted: u64, expected: u64) {
    check_of(expected, what, counted, expected);
}

/// Who serves the loads of an array that is walked, to 1 % of all loads: misses of the first level, the second's
/// hits, the last's, and memory's part.
fn check_walk(name: &str, kib: u64, times: u64, served: impl Fn(u64) -> [u64; 4]) {
    let Some(region) = region(name) else { return };
    let user: Counts = known(&region).user;
    let lines = kib * 1024 / LINE;
    let [l1d_misses, l2_hits, llc_hits, memory] = served(lines);
    let loads = lines * times;
    check("loads", user.loads, loads);
    check("stores", user.stores, 0);
    check_of(loads, "first level", user.l1d_misses, l1d_misses);
    check_of(loads, "second level", user.l2_hits, l2_hits);
    check_of(loads, "last level", user.llc_hits, llc_hits);
    check_of(loads, "memory", user.memory_local, memory);
    check("other nodes", user.memory_remote + user.cache_remote, 0);
}

#[test]
fn an_array_of_16_kib_is_served_by_the_first_level() {
    check_walk("first", 16, 2000, |lines| [lines, 0, 0, lines]);
}

#[test]
fn an_array_of_256_kib_is_served_by_the_second_level() {
    check_walk("second", 256, 64, |lines| [lines * 64, lines * 63, 0, lines]);
}

#[test]
fn an_array_of_4_mib_is_served_by_the_last_level() {
    check_walk("last", 4096, 8, |lines| [lines * 8, 0, lines * 7, lines]);
}

#[test]
fn an_array_of_64_mib_is_served_by_memory() {
    check_walk("memory", 65536, 2, |lines| [lines * 2, 0, 0, lines * 2]);
}

const MOVED_LINES: u64 = 4096;

#[test]
fn a_task_that_moves_within_a_last_level_cache_is_served_by_it() {
    let Some(region) = region("near") else { return };
    let task = known(&region);
    check("last level", task.user.llc_hits, MOVED_LINES);
    check("second level", task.user.l2_hits, MOVED_LINES);
    check("other caches", task.user.cache_local + task.user.cache_remote, 0);
    assert_eq!((task.cpu_moves, task.domain_moves, task.node_moves), (1, 0, 0));
}

#[test]
fn a_task_that_moves_to_another_node_is_served_by_the_cache_that_it_left() {
    let Some(region) = region("far") else { return };
    let task = known(&region);
    check("other node's cache", task.user.cache_remote, MOVED_LINES);
    check("for it moved", task.user.causes.moved, MOVED_LINES);
    check("second level", task.user.l2_hits, MOVED_LINES);
    check("stores", task.user.stores, MOVED_LINES);
    assert_eq!((task.cpu_moves, task.domain_moves, task.node_moves), (1, 1, 1));
}

#[test]
fn a_word_that_two_cpus_write_in_turns_is_taken_each_time() {
    let Some(region) = region("share") else { return };
    let tasks: Vec<&Task> = region.tasks.iter().filter(|task| task.comm == "known").collect();
    assert_eq!(tasks.len(), 2);
    check("turns", tasks.iter().map(|task| task.user.upgrades).sum(), 2 * 1000);
}

#[test]
fn instructions_are_counted_whether_they_refer_to_memory_or_not() {
    let Some(region) = region("nops") else { return };
    let user = known(&region).user;
    check("instructions", user.instructions, 2_000_000);
    check("loads", user.loads, 0);
}

#[test]
fn the_counts_of_tasks_add_up_to_those_of_cpus() {
    for name in ["first", "far", "share"] {
        let Some(region) = region(name) else { return };
        let mut by_task = Counts::default();
        let mut by_cpu = Counts::default();
        region.tasks.iter().for_each(|task| by_task += task.total());
        region.cpus.iter().for_each(|cpu| by_cpu += *cpu);
        assert_eq!(by_task, by_cpu, "{name}");
        assert!(
            region.tasks[0].pid == 0 && region.tasks[0].user == Counts::default(),
            "idle tasks are the kernel's"
        );
    }
}

#[test]
fn stalls_are_who_served_by_what_it_takes() {
    let Some(region) = region("memory") else { return };
    let user = known(&region).user;
    // Cycles of 500 ps beyond a hit of the first level for loads, all of it for fetches.
    let loads = 500 * (200 - 4) * 2 * 65536 * 1024 / LINE;
    assert!(user.stall_ps.abs_diff(loads) < loads / 100, "{} ps, {loads} expected", user.stall_ps);
}

#[test]
fn every_instruction_that_moved_the_guests_clock_is_counted() {
    let Some(region) = region("memory") else { return };
    let instructions: u64 = region.cpus.iter().map(|cpu| cpu.instructions).sum();
    let by_clock = region.guest_ns / NS_PER_INSTRUCTION;
    // A region begins and ends within a block of code; the rest never idles.
    assert!(instructions.abs_diff(by_clock) < 200, "{instructions} counted, {by_clock} by the clock");
}

#[test]
fn a_program_can_ask_for_its_own_counts() {
    let Some((_, lines)) = booted() else { return };
    let value = |key| said(lines, "asked", key);
    assert_eq!(value("cpu"), 0);
    assert_eq!(value("pid"), value("own-pid"));
    check("loads", value("loads"), 100_000);
}

#[test]
fn the_counters_of_a_cpu_go_on_over_regions_and_stand_still_between_them() {
    let Some((report, lines)) = booted() else { return };
    let report = common::report(report);
    let mut of_regions = Counts::default();
    report.regions.iter().for_each(|region| of_regions += region.cpus[0]);
    let [cycles, instructions, misses] = of_regions.counters(report.cycle_ps);
    check("cycles", said(lines, "counters", "cycles"), cycles);
    check("instructions", said(lines, "counters", "instructions"), instructions);
    check("misses", said(lines, "counters", "misses"), misses);
}

#[test]
fn two_runs_are_the_same_to_the_byte() {
    let Some(first) = booted() else { return };
    assert_eq!(*first, boot());
}

fn refused(arguments: &[(&str, &str)]) -> String {
    let arguments: Vec<(&str, String)> =
        arguments.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Guest::new(Kernel::Pinned).plugin(&plugin(), &arguments).run("").unwrap_err().to_string()
}

#[test]
fn what_cannot_be_counted_is_refused_before_the_guest_starts() {
    if booted().is_none() {
        return;
    }
    let out = env::temp_dir().join("hearth-refused.json").display().to_string();
    let machine = Setup::new(Mode::Deterministic).machine;
    for (arguments, reason) in [
        (vec![("machine", "nowhere.toml"), ("out", &out)], "nowhere.toml"),
        (vec![("machine", "sgi-4d340"), ("out", &out)], "the guest has 8 CPUs and machine sgi-4d340 has 4"),
        (vec![("machine", "server-2s"), ("out", &out)], "can be simulated"),
        (vec![("machine", machine), ("out", "/nowhere/counts.json")], "/nowhere/counts.json"),
        (vec![("machine", machine), ("out", &out), ("node_mib", "1:1:1")], "memory of 3 nodes"),
        (vec![("machine", machine)], "out= is missing"),
    ] {
        let said = refused(&arguments);
        assert!(said.contains("hearth: ") && said.contains(reason), "{reason}: {said}");
    }
    let _ = fs::remove_file(Path::new(&out));
}
