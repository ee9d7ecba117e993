//! A recorded program misses the simulated first level as often as valgrind's cachegrind says.

#![allow(clippy::unwrap_used)]

use hearth_hardware::{Access, Hardware, Mode, Placement};
use hearth_machine::Machine;
use hearth_trace::{Backend, Kind, RecordOptions, Trace, record};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Walks over arrays with strides, and a chain of pointers in shuffled order.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <stdio.h>
static unsigned long a[1 << 16], chain[1 << 14];
int main(void)
{
    unsigned long sum = 0, at = 0, n = 1 << 14;
    for (unsigned long i = 0; i < n; i++)
        chain[i] = (i * 5167 + 3) % n;
    for (int round = 0; round < 4; round++) {
        for (unsigned long i = 0; i < 1 << 16; i += 3)
            sum += a[i]++;
        for (unsigned long i = 0; i < 1 << 16; i += 17)
            a[i] = sum;
        for (unsigned long i = 0; i < n; i++)
            sum += at = chain[at];
    }
    printf("%lu\n", sum);
    return 0;
}
"#;

/// Sets of 4 KB in all, so that the place in a page decides: pages are numbered anew in a trace.
const GEOMETRY: &str = "32768,8,64";

fn compile(folder: &Path) -> Option<PathBuf> {
    let source = folder.join("walk.c");
    std::fs::write(&source, PROGRAM).unwrap();
    let program = folder.join("walk");
    let built = Command::new("cc").args(["-O1", "-static", "-o"]).arg(&program).arg(&source).status();
    built.is_ok_and(|status| status.success()).then_some(program)
}

/// Misses of the first-level data cache, as cachegrind counts them.
fn cachegrind(program: &Path) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"])
        .args([format!("--D1={GEOMETRY}"), format!("--I1={GEOMETRY}"), "--LL=16777216,16,64".into()])
        .arg(program)
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = report.lines().find(|line| line.contains("D1  misses:"))?;
    let number = line.split("misses:").nth(1)?.split('(').next()?;
    number.replace(',', "").trim().parse().ok()
}

fn machine() -> Machine {
    let mut machine = Machine::load("server-2s").unwrap();
    machine.nodes.truncate(1);
    machine.nodes[0].cpus = 1;
    machine.caches.remove(2);
    for (cache, (bytes, ways)) in machine.caches.iter_mut().zip([(32768, 8), (32768, 8), (16 << 20, 16)]) {
        (cache.size_bytes, cache.ways, cache.shared_by) = (bytes, ways, 1);
    }
    machine
}

/// Misses of the simulated first-level data cache, and references that cross lines.
fn simulate(trace: &Trace) -> (u64, u64) {
    let mut hardware = Hardware::new(&machine(), 1).unwrap();
    let info = trace.info();
    let base = hardware.segment((info.pages + 1) * info.page_bytes, Placement::FirstTouch).base;
    let mut crossing = 0;
    for event in trace.load_thread(0, u64::MAX).unwrap().iter().filter(|event| event.kind() != Kind::Fetch) {
        let access = if event.kind() == Kind::Write { Access::Write } else { Access::Read };
        let (first, last) = (event.address(), event.address() + u64::from(event.bytes()) - 1);
        let _ = hardware.reference(0, base + first, access, Mode::User);
        if first / 64 != last / 64 {
            crossing += 1;
            let _ = hardware.reference(0, base + last, access, Mode::User);
        }
    }
    (hardware.ports()[0].counters().l1d_misses, crossing)
}

#[test]
fn the_first_level_misses_as_often_as_cachegrinds() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path()) else {
        return println!("skipped: cc cannot build a static program");
    };
    let Some(theirs) = cachegrind(&program) else {
        return println!("skipped: valgrind is not here, or does not run");
    };
    // lackey is a valgrind tool as well: the program sees the same processor and the same addresses.
    let path = folder.path().join("walk.trace");
    let mut options = RecordOptions::new(&path);
    options.backend = Backend::Lackey;
    record(&[OsString::from(&program)], options).unwrap();
    let (ours, crossing) = simulate(&Trace::open(&path).unwrap());
    println!("D1 misses: {ours} here, {theirs} with cachegrind; {crossing} references cross lines");
    // cachegrind counts a reference that misses two lines once. The start of the two runs differs a
    // little: names of tools and files are on the program's stack.
    assert!(ours.abs_diff(theirs) <= crossing + 64, "{ours} here, {theirs} with cachegrind");
    assert!(theirs > 20_000, "the program is meant to miss");
}
