//! A command in real kernels on an emulated machine, as `hearth emulate` runs it.

#![allow(missing_docs, clippy::unwrap_used)]

use hearth_emulate::counts::Task;
use hearth_emulate::{EmulateError, Emulation, Files, Job, Kept, Other, Progress, Run, Scheduler, run_all};
use hearth_machine::Machine;
use hearth_policy::Policy;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/emulate.rs");

struct Nobody;

impl Progress for Nobody {
    fn began(&self, _: &Job) {}
    fn ended(&self, _: &Job, _: usize, _: usize) {}
}

/// Hearth as one file, or nothing, with the reason printed, where no guest can boot.
fn hearth() -> Option<PathBuf> {
    match hearth_kernel_tests::hearth() {
        Ok(hearth) => {
            hearth_kernel_tests::ran();
            Some(hearth)
        }
        Err(reason) => {
            hearth_kernel_tests::skipped(&reason);
            None
        }
    }
}

fn emulation(hearth: &Path, command: &[&str]) -> Emulation {
    let mut files = Files::default();
    let program = files.add_program(command[0]).unwrap().display().to_string();
    files.add(Path::new(FILE), None).unwrap();
    let arguments = command[1..].iter().map(|&word| word.to_owned());
    Emulation {
        machine: Machine::load("sgi-4d340").unwrap(),
        command: std::iter::once(program).chain(arguments).collect(),
        before: None,
        files,
        hearth: hearth.to_owned(),
        folder: "/".into(),
        path: "/usr/bin:/bin".into(),
        copies: 3,
        is_warm: false,
        is_timed: false,
        memory_mib: None,
        limit: Duration::from_secs(300),
    }
}

fn runs(emulation: &Emulation, jobs: &[(Scheduler, u64)]) -> Vec<Result<Run, EmulateError>> {
    let jobs: Vec<Job> = jobs.iter().map(|(scheduler, seed)| Job::one(scheduler.clone(), *seed)).collect();
    let _turn = hearth_kernel_tests::turn();
    let outcomes = run_all(emulation, &jobs, 1, None, &AtomicBool::new(false), &Nobody);
    outcomes.into_iter().map(|outcome| outcome.and_then(|mut rounds| rounds.remove(0))).collect()
}

/// What comes of one guest.
fn guest(emulation: &Emulation, job: &Job, kept: Option<&Kept>) -> Vec<Result<Run, EmulateError>> {
    let _turn = hearth_kernel_tests::turn();
    emulation.run(job, kept, &AtomicBool::new(false)).unwrap()
}

fn sorts(run: &Run) -> Vec<&Task> {
    run.region.tasks.iter().filter(|task| task.comm == "sort").collect()
}

#[test]
fn a_command_is_counted_alike_each_time_and_runs_under_hearth_too() {
    let Some(hearth) = hearth() else { return };
    let light = Scheduler::Hearth(Box::new(Policy::load("light").unwrap()));
    let jobs = [(Scheduler::Kernel, 1), (Scheduler::Kernel, 1), (light, 1), (Scheduler::KernelCache, 2)];
    let emulation = emulation(&hearth, &["sort", FILE]);
    let runs: Vec<Run> = runs(&emulation, &jobs).into_iter().map(Result::unwrap).collect();
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0].frames, runs[3].frames, "another seed's files are on other pages");
    for run in &runs {
        let tasks = sorts(run);
        assert_eq!(tasks.len(), emulation.copies, "{}", run.scheduler);
        assert!(tasks.iter().all(|task| task.user.instructions > 100_000 && task.total().llc_misses() > 0));
        assert!(run.region.guest_ns > 0 && run.region.cpus.len() == 4);
    }
    let own = |run: &Run| sorts(run).iter().map(|task| task.user.instructions).min().unwrap() as f64;
    let ratio = own(&runs[2]) / own(&runs[0]);
    assert!((0.99..1.01).contains(&ratio), "the same program executes {ratio} times the instructions");
}

#[test]
fn a_command_that_fails_is_told_with_its_exit_code_and_last_words() {
    let Some(hearth) = hearth() else { return };
    // No end of line at the end.
    let emulation = emulation(&hearth, &["sh", "-c", "printf 'first\\nand last' >&2; exit 2"]);
    let result = runs(&emulation, &[(Scheduler::Kernel, 1)]).pop().unwrap();
    let Err(EmulateError::Command { code: 2, last_lines, .. }) = result else { panic!("{result:?}") };
    assert_eq!(last_lines.first().map(String::as_str), Some("first"), "{last_lines:?}");
    assert_eq!(last_lines.last().map(String::as_str), Some("and last"), "{last_lines:?}");
}

/// A scheduler that a command loads: Hearth's own program is one.
fn other(name: &str, words: &[&str]) -> Scheduler {
    let command = words.iter().map(|&word| word.to_owned()).collect();
    let mut files = Files::default();
    files.add_kernel_config();
    Scheduler::Other(Other { name: name.into(), command, files })
}

/// Hearth's program, as any other's.
fn other_of(hearth: &Path, name: &str, words: &[&str]) -> Scheduler {
    let Scheduler::Other(mut of) = other(name, words) else { unreachable!() };
    of.files.add(hearth, Some(Path::new("/hearth"))).unwrap();
    Scheduler::Other(of)
}

#[test]
fn any_command_may_load_the_scheduler_and_what_becomes_of_it_is_told() {
    let Some(hearth) = hearth() else { return };
    let mut emulation = emulation(&hearth, &["sort", FILE]);
    emulation.copies = 1;
    let stays = other_of(&hearth, "stays", &["/hearth", "start", "--foreground", "--policy", "light"]);
    let schedulers = [
        stays.clone(),
        other_of(&hearth, "leaves a daemon", &["/hearth", "start", "--policy", "light"]),
        other("ends", &["sh", "-c", "echo too bad; exit 3"]),
    ];
    let results = runs(&emulation, &schedulers.map(|scheduler| (scheduler, 1)));
    let [Ok(stay), Ok(leave), Err(end)] = &results[..] else { panic!("{results:?}") };
    assert!(stay.scheduler_said.iter().any(|line| line.contains("Hearth")), "{:?}", stay.scheduler_said);
    assert_eq!([stay, leave].map(|run| sorts(run).len()), [1, 1]);
    let EmulateError::NoScheduler { last_lines, .. } = end else { panic!("{end:?}") };
    assert_eq!(last_lines[..], ["(it ended with exit code 3, and has loaded none)", "too bad"]);

    // As the kernel ends one that stalls.
    emulation.command = ["sh", "-c", "echo S >/proc/sysrq-trigger; sleep 1"].map(str::to_owned).into();
    emulation.files.add_program("sh").unwrap();
    let result = runs(&emulation, &[(stays, 1)]).pop().unwrap();
    let Err(EmulateError::SchedulerEnded { last_lines, .. }) = result else { panic!("{result:?}") };
    assert!(last_lines.iter().any(|line| line.contains("sysrq")), "{last_lines:?}");
}

#[test]
fn rounds_of_two_guests_that_begin_with_a_loaded_scheduler_are_alike_and_what_is_kept_is_not_run() {
    let Some(hearth) = hearth() else { return };
    let mut emulation = emulation(&hearth, &["sort", FILE]);
    emulation.copies = 1;
    emulation.is_timed = true;
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::in_folder(folder.path()).unwrap();
    let light = Scheduler::Hearth(Box::new(Policy::load("light").unwrap()));
    let job = Job { rounds: 0..=2, ..Job::one(light, 1) };
    let rounds = |emulation: &Emulation, job: &Job, kept: Option<&Kept>| -> Vec<Run> {
        guest(emulation, job, kept).into_iter().map(Result::unwrap).collect()
    };
    let runs = rounds(&emulation, &job, Some(&kept));
    // The first one only prepares the guest.
    assert!(runs.iter().map(|run| run.round).eq([1, 2]));
    assert!(runs.iter().all(|run| sorts(run).len() == 1));
    assert_ne!(runs[0].frames, runs[1].frames, "each round has pages of its own");
    assert_eq!(rounds(&emulation, &job, None), runs);
    // In which no guest comes to its end.
    emulation.limit = Duration::ZERO;
    assert_eq!(rounds(&emulation, &job, Some(&kept)), runs);
    emulation.limit = Duration::from_secs(300);
    let again = rounds(&emulation, &Job { is_again: true, rounds: 1..=1, ..job }, Some(&kept));
    assert_ne!((&again[0].frames, again[0].region.guest_ns), (&runs[0].frames, runs[0].region.guest_ns));
}

#[test]
fn warm_caches_are_those_that_a_run_of_the_command_leaves() {
    let Some(hearth) = hearth() else { return };
    let mut emulation = emulation(&hearth, &["sort", FILE]);
    emulation.copies = 1;
    // Of caches that hold a short program.
    emulation.machine = Machine::load("xeon-smp2").unwrap();
    let cold = runs(&emulation, &[(Scheduler::Kernel, 1)]).pop().unwrap().unwrap();
    emulation.is_warm = true;
    let warm = runs(&emulation, &[(Scheduler::Kernel, 1)]).pop().unwrap().unwrap();
    let [cold, warm] = [cold, warm].map(|run| {
        let all = Task::sum(run.region.tasks.iter()).total();
        assert_eq!(all.instructions, run.region.cpus.iter().map(|cpu| cpu.instructions).sum::<u64>());
        assert_eq!(sorts(&run).len(), 1, "the run before is not counted");
        sorts(&run)[0].total()
    });
    let ratio = warm.instructions as f64 / cold.instructions as f64;
    assert!((0.95..1.05).contains(&ratio), "{ratio} times the instructions");
    assert!(warm.llc_misses() < cold.llc_misses() / 2, "{} and {}", warm.llc_misses(), cold.llc_misses());
}

#[test]
fn percentiles_of_known_waits_are_right_and_what_runs_before_is_not_counted() {
    const REQUESTS: &str = concat!(env!("OUT_DIR"), "/requests");
    let Some(hearth) = hearth() else { return };
    // One after the other, two million cycles each, at 3.2 GHz.
    let mut emulation = emulation(&hearth, &[REQUESTS, "burst", "200", "1000"]);
    emulation.machine = Machine::load("xeon-smp2").unwrap();
    emulation.is_timed = true;
    emulation.copies = 1;
    // What it leaves running has ended when the next turn begins.
    emulation.before = Some("[ -z \"$(pidof tail)\" ] || exit 4; tail -f /dev/null &".into());
    let job = Job { rounds: 1..=2, ..Job::one(Scheduler::Kernel, 1) };
    for run in guest(&emulation, &job, None) {
        let run = run.unwrap();
        for (percentile, requests) in [("p50", 100.0), ("p99", 198.0), ("p999", 200.0)] {
            let measured = run.measures[&format!("response_us_{percentile}")] / (requests * 625.0);
            assert!((1.0..1.01).contains(&measured), "{percentile}: {measured} times what is known");
        }
        let is_before = |task: &&Task| task.comm == "tail";
        let before = Task::sum(run.region.tasks.iter().filter(is_before)).total().instructions;
        assert!(before < 100_000, "{before} instructions were counted");
    }

    emulation.before = Some("echo no >&2; exit 4".into());
    let result = runs(&emulation, &[(Scheduler::Kernel, 1)]).pop().unwrap();
    let Err(EmulateError::Before { code: 4, last_lines, .. }) = result else { panic!("{result:?}") };
    assert_eq!(last_lines.iter().filter(|line| !line.is_empty()).collect::<Vec<_>>(), ["no"]);
    emulation.before = Some("echo never mind >$HEARTH_MEASURES".into());
    let result = runs(&emulation, &[(Scheduler::Kernel, 1)]).pop().unwrap();
    let Err(EmulateError::Measures { what, .. }) = result else { panic!("{result:?}") };
    assert!(what.contains("never mind"), "{what}");
}

#[test]
fn no_huge_pages_are_made_of_a_commands_memory_meanwhile() {
    let Some(hearth) = hearth() else { return };
    // Who fills the pipe waits with its memory for whoever never reads.
    let mut emulation = emulation(&hearth, &["sh", "-c", "dd if=/dev/zero bs=16M count=1 | sleep 25"]);
    emulation.copies = 1;
    let run = runs(&emulation, &[(Scheduler::Kernel, 1)]).pop().unwrap().unwrap();
    assert!(run.region.guest_ns > 25_000_000_000);
    let tasks = &run.region.tasks;
    let switches = |name: &str| tasks.iter().filter(|task| task.comm == name).map(|task| task.switches).sum();
    let (dd, khugepaged): (u64, u64) = (switches("dd"), switches("khugepaged"));
    assert!(dd > 0 && khugepaged <= 1, "it ran {khugepaged} times");
}
