//! Simulated time drives the guest's clock.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::guest::{Setup, plugin};
use common::known;
use hearth_emulate::counts::Region;
use hearth_guest::{Guest, Kernel, Mode};
use hearth_kernel_tests::Once;
use std::env;
use std::ops::RangeInclusive;

const CYCLE_PS: u64 = 500;

const SCRIPT: &str = "
hearth-region symbols
section known
set -e
known walk first 16 50000
known walk memory 65536 1
known share share 1000
known spin beside 65536 1
hearth-region run both 2 1 cold -- known walk ignored 4096 20
known clock clock
";

fn boot() -> (String, Vec<String>) {
    common::boot(Mode::Timed, SCRIPT)
}

fn booted() -> Option<&'static (String, Vec<String>)> {
    static BOOTED: Once<(String, Vec<String>)> = Once::named("timed");
    common::can_boot().then(|| BOOTED.get(boot))
}

fn region(name: &str) -> Option<Region> {
    Some(common::region(&booted()?.0, name))
}

/// Within 2 %, and what a few interrupts take; the shortest of what is measured here is 30 ms.
fn check_ns(ns: u64, expected: RangeInclusive<u64>) {
    let slack = expected.end() / 50 + 100_000;
    let allowed = expected.start().saturating_sub(slack)..=expected.end() + slack;
    assert!(allowed.contains(&ns), "{ns} ns, {expected:?} expected");
}

#[test]
fn the_guests_clock_moves_by_what_its_busy_cpu_does() {
    for name in ["first", "memory"] {
        let Some(region) = region(name) else { return };
        let own = known(&region).total().time_ps(CYCLE_PS) / 1000;
        // The kernel's threads may have had a turn, too, on this CPU or on the other.
        let all: u64 = region
            .tasks
            .iter()
            .filter(|task| task.pid != 0)
            .map(|task| task.total().time_ps(CYCLE_PS) / 1000)
            .sum();
        check_ns(region.guest_ns, own..=all);
    }
}

#[test]
fn cpus_work_at_the_same_time() {
    let Some(region) = region("both") else { return };
    let tasks = region.tasks.iter().filter(|task| task.comm == "known");
    let longest = tasks.clone().map(|task| task.total().time_ps(CYCLE_PS) / 1000).max().unwrap();
    let all: u64 = tasks.map(|task| task.total().time_ps(CYCLE_PS) / 1000).sum();
    // The second begins up to 4 ms later.
    assert!(
        region.guest_ns < longest + 8_000_000 && region.guest_ns < all,
        "{} of {all} ns",
        region.guest_ns
    );
}

#[test]
fn no_cpu_runs_ahead_of_one_that_waits_for_it_in_a_loop() {
    let Some(region) = region("beside") else { return };
    let busiest_ns = region.cpus.iter().map(|cpu| cpu.time_ps(CYCLE_PS) / 1000).max().unwrap();
    // 64 MiB from memory: a load of a line, four instructions and 200 cycles beyond a hit's 4.
    assert!(busiest_ns > 65536 * 1024 / 64 * (5 + 196) * CYCLE_PS / 1000);
    check_ns(region.guest_ns, busiest_ns..=busiest_ns);
}

#[test]
fn a_program_sees_the_time_that_its_loads_take() {
    let Some((_, lines)) = booted() else { return };
    let line = lines.iter().find(|line| line.starts_with("took ")).unwrap();
    let ns: u64 = line.split('=').next_back().unwrap().parse().unwrap();
    // 64 MiB once: a load of a line, four instructions and 200 cycles beyond a hit's 4.
    let loads = 65536 * 1024 / 64;
    let expected = loads * (5 + 196) * CYCLE_PS / 1000;
    check_ns(ns, expected..=expected);
}

#[test]
fn two_runs_are_the_same_to_the_byte() {
    let Some(first) = booted() else { return };
    assert_eq!(*first, boot());
}

#[test]
fn a_guest_whose_clock_counts_instructions_is_refused() {
    if booted().is_none() {
        return;
    }
    let out = env::temp_dir().join("hearth-untimed.json");
    let arguments = [
        ("machine", Setup::new(Mode::Timed).machine.to_owned()),
        ("out", out.display().to_string()),
        ("mode", "timed".to_owned()),
    ];
    let guest = Guest::new(Kernel::Pinned).plugin(&plugin(), &arguments);
    let said = guest.run("").unwrap_err().to_string();
    assert!(said.contains("hearth: ") && said.contains("without -icount"), "{said}");
    let _ = std::fs::remove_file(out);
}

#[test]
fn a_region_that_does_not_end_is_counted_to_the_end_of_the_run() {
    if !common::can_boot() {
        return;
    }
    let script = "section known\nhearth-region run endless 1 1 cold -- sleep 1000 &\nusleep 100000\n";
    let (report, _) = common::boot(Mode::Timed, script);
    let endless = common::region(&report, "endless");
    assert!(!endless.is_ended && endless.guest_ns > 90_000_000, "{} ns", endless.guest_ns);
    assert!(region("both").is_some_and(|both| both.is_ended));
}
