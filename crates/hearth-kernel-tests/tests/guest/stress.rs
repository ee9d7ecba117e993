//! Hearth under stress-ng, with CPUs that run at once. `HEARTH_STRESS_SECONDS` says how long each
//! stressor runs: 10 if it is not set.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use hearth_guest::{Guest, GuestError, Kernel, Mode, Output, stress_root};
use hearth_kernel_tests::{Shared, assert_untroubled, first, guest};

const SECONDS: u64 = 10;
/// Each: what it presses, and stress-ng's options for it.
const STRESSORS: [(&str, &str); 5] = [
    ("policies", "--schedpolicy 4"),
    ("forks", "--fork 4 --fork-max 8"),
    ("futexes", "--futex 4 --switch 2"),
    ("affinity", "--affinity 8 --affinity-rand"),
    ("signals", "--kill 2 --sigq 2 --sigrt 2"),
];
const MARGIN: Duration = Duration::from_secs(240);

fn seconds() -> u64 {
    std::env::var("HEARTH_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS)
}

fn script() -> String {
    let mut script = "section start\nstart\n".to_owned();
    for (name, options) in STRESSORS {
        let _ = write!(
            script,
            "section {name}\n\
             stress-ng {options} --timeout {}s --temp-path /tmp --oomable >/tmp/out 2>&1\n\
             echo status=$? left=$(ps | grep -c '[s]tress-ng') state=$(state)\n\
             tail -n 20 /tmp/out\n",
            seconds()
        );
    }
    script + "section after\ntasks forks 100 20\ntasks exits\nhearth stop\nawait disabled\n"
}

fn concurrent(hearth: &Path) -> Result<Guest, GuestError> {
    let root = stress_root();
    let folders = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|folder| root.join(folder));
    guest(Kernel::Pinned, hearth)
        .mode(Mode::Concurrent)
        .limit(Duration::from_secs(seconds()) * STRESSORS.len() as u32 + MARGIN)
        .program(root.join("usr/bin/stress-ng"), "/bin/stress-ng", &folders)
}

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output_of(&script(), concurrent)
}

fn check(stressor: &str) {
    let Some(output) = output() else { return };
    let lines = &output.section(stressor).unwrap().lines;
    let end = first(output, stressor, "status");
    assert_eq!(end.text("state"), Some("enabled"), "{lines:#?}");
    assert_eq!(end.text("status"), Some("0"), "{lines:#?}");
    assert_eq!(end.text("left"), Some("0"), "stress-ng left tasks behind");
}

#[test]
fn it_bears_tasks_that_change_their_policy() {
    check("policies");
}

#[test]
fn it_bears_forks() {
    check("forks");
}

#[test]
fn it_bears_futexes_and_switches() {
    check("futexes");
}

#[test]
fn it_bears_masks_that_change() {
    check("affinity");
}

#[test]
fn it_bears_signals() {
    check("signals");
}

#[test]
fn it_is_sound_afterwards() {
    let Some(output) = output() else { return };
    assert_eq!(first(output, "after", "forks").text("reaped"), Some("100"));
    assert!(
        hearth_kernel_tests::records(output, "after", "exit").iter().all(|end| end.text("ok") == Some("1"))
    );
    assert_eq!(first(output, "after", "await").text("state"), Some("disabled"));
    assert_untroubled(output);
}
