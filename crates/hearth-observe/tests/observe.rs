//! Observes programs whose scheduling is known, on this kernel. Skipped, with the reason, where the
//! kernel or the privilege is missing.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use hearth_observe::estimate::{self, Estimate, Of};
use hearth_observe::layout::{Before, Program};
use hearth_observe::{Each, ObserveError, Observed, Options, Target, observe};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// Two observations at a time would want more counters than a CPU has.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The programs, compiled once.
fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    &PROGRAMS
        .get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/scheduled.c");
            let path = folder.path().join("scheduled");
            let status = Command::new("cc").arg("-O1").arg("-o").arg(&path).arg(source).status().unwrap();
            assert!(status.success());
            (folder, path)
        })
        .1
}

/// The CPUs that this process may use.
fn cpus() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// What was counted of a command, and how often the kernel says that it was switched; nothing if
/// this machine cannot do it.
fn observed(words: &[&str]) -> Option<(Observed, Program, u64)> {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("switches");
    let mut command: Vec<OsString> = vec![programs().into(), file.clone().into()];
    command.extend(words.iter().map(OsString::from));
    let options = Options {
        target: Target::Command(command),
        duration: None,
        each: Each::Program,
        counters_percent: 10.0,
    };
    let observed = match observe(&options, &AtomicBool::new(false)) {
        Ok(observed) => observed,
        Err(reason @ (ObserveError::NoPrivilege | ObserveError::NoBtf { .. })) => {
            eprintln!("skipped: {reason}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    assert!(observed.exit.unwrap().success(), "{:?}", observed.exit);
    let program = observed.programs.get("scheduled").expect("the command was observed").clone();
    let switches = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
    Some((observed, program, switches))
}

/// Whether so many ends are those of two processes. One that others preempt on its last way out of the kernel,
/// when its parent knows of its end already, is not waited for.
fn are_all(exits: u64) -> bool {
    (1..=2).contains(&exits)
}

fn cpu(index: usize) -> String {
    cpus()[index].to_string()
}

/// Misses that are loaded again after others ran.
fn reload(program: &Program) -> Estimate {
    let steady = estimate::steady(program, Of::Misses);
    let reloads = estimate::reloads(program, Of::Misses, steady.as_ref()).expect("others ran");
    reloads.each[Before::Others as usize].expect("often enough")
}

#[test]
fn a_large_working_set_is_reloaded_and_a_small_one_is_not() {
    let mut seen = Vec::new();
    // Where others use the CPUs at the same time, one run may not be enough.
    for _ in 0..5 {
        let Some((cold, large, _)) = observed(&["alternate", &cpu(0), "512", "64", "600"]) else { return };
        if !cold.present.all() {
            eprintln!("skipped: {}", cold.notes.join("; "));
            return;
        }
        let (_, small, _) = observed(&["alternate", &cpu(0), "8", "8000", "600"]).unwrap();
        let (large, small) = (reload(&large), reload(&small));
        if large.low > 0.0 && large.low > small.high {
            return;
        }
        seen.push((large, small));
    }
    panic!("{seen:?}");
}

#[test]
fn intervals_are_as_many_as_the_kernel_counts_switches() {
    let Some((_, program, switches)) = observed(&["alternate", &cpu(0), "8", "1", "5000"]) else { return };
    let intervals = program.intervals();
    assert!(intervals >= 10_000, "{intervals}");
    // The kernel does not count a task's last switch, and counts what happened before exec.
    assert!(intervals.abs_diff(switches) <= 10, "{intervals} intervals, {switches} switches");
    assert_eq!(program.befores.iter().sum::<u64>(), intervals);
    assert_eq!(program.interval_lengths.0.iter().sum::<u64>(), intervals);
    assert!(program.slices <= intervals && program.slice_ns <= program.interval_ns);
}

#[test]
fn every_move_between_cpus_is_seen() {
    if cpus().len() < 2 {
        eprintln!("skipped: there is one CPU only");
        return;
    }
    let Some((_, program, _)) = observed(&["move", &cpu(0), &cpu(1), "501"]) else { return };
    let moves: u64 = program.befores[Before::MovedDomain as usize..].iter().sum();
    assert!((500..=505).contains(&moves), "{moves} of {:?}", program.befores);
}

#[test]
fn a_task_that_yields_is_not_taken_for_a_preempted_one() {
    let Some((_, program, _)) = observed(&["yield", &cpu(0), "2000"]) else { return };
    let [_, _, yields, _, exits] = program.ends;
    assert!(yields * 10 > program.intervals() * 8, "{:?}", program.ends);
    assert!(are_all(exits), "{:?}", program.ends);
}

#[test]
fn those_that_compute_use_up_their_slices() {
    let Some((_, program, _)) = observed(&["spin", &cpu(0), "400"]) else { return };
    let [quantum, _, yields, block, exits] = program.ends;
    // Others may preempt them as often as they like.
    assert!(quantum >= 10 && quantum > yields + block && are_all(exits), "{:?}", program.ends);
    assert!(program.befores[Before::Others as usize] >= quantum, "{:?}", program.befores);
    // Two processes on one CPU for 400 ms.
    assert!((20_000_000..=900_000_000).contains(&program.interval_ns), "{}", program.interval_ns);
}

#[test]
fn the_whole_host_is_observed_for_a_time_that_is_given() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let duration = Some(Duration::from_millis(300));
    let options = Options { target: Target::Host, duration, each: Each::Task, counters_percent: 10.0 };
    let observed = match observe(&options, &AtomicBool::new(false)) {
        Ok(observed) => observed,
        Err(reason @ (ObserveError::NoPrivilege | ObserveError::NoBtf { .. })) => {
            eprintln!("skipped: {reason}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    assert!(observed.elapsed >= Duration::from_millis(300) && !observed.interrupted);
    let time = &observed.time;
    assert!(time.switches > 0 && time.watched_ns + time.idle_ns + time.kernel_ns + time.other_ns > 0);
    assert!(observed.run_time.is_some_and(|(ns, count)| ns > 0 && count > 0));
}

#[test]
fn what_is_not_there_is_said() {
    for (target, words) in [
        (Target::Process(0), "no process 0"),
        (Target::Process(u32::MAX), "no process"),
        (Target::Cgroup("no/such/group".into()), "no/such/group is no control group"),
        (Target::Cgroup("/tmp".into()), "/tmp is no control group"),
    ] {
        let options = Options { target, duration: None, each: Each::Program, counters_percent: 10.0 };
        let error = observe(&options, &AtomicBool::new(true)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
