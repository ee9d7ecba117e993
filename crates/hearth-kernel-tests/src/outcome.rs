//! Tells that a test ran in a guest, or why it did not.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::thread;
use std::time::Duration;

/// Set where a test that cannot run is to fail: in CI.
const REQUIRE: &str = "HEARTH_REQUIRE_GUEST";
/// A file that gets a line for each test, for `tools/test` to count.
const NOTES: &str = "HEARTH_KERNEL_TESTS";

/// Notes that the test of this thread runs in a guest.
pub fn ran() {
    note("ran", "");
}

/// Notes and prints why the test of this thread is skipped.
///
/// # Panics
/// Where a guest is required.
pub fn skipped(reason: &str) {
    assert!(!is_set(REQUIRE), "{REQUIRE} is set, and no guest can boot: {reason}");
    eprintln!("skipped: {reason}");
    note("skipped", reason);
}

/// Notes how long a guest of the file of this thread's test took, from boot to end.
pub(crate) fn booted(took: Duration) {
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test without a name");
    let file = test.split("::").next().unwrap_or(test);
    write(&format!("booted\t{file}\t{:.1}\n", took.as_secs_f64()));
}

fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}

fn note(outcome: &str, reason: &str) {
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test without a name");
    write(&format!("{outcome}\t{test}\t{}\n", reason.replace('\n', " ")));
}

fn write(line: &str) {
    let Some(path) = env::var_os(NOTES).filter(|path| !path.is_empty()) else { return };
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(line.as_bytes()).unwrap();
}
