//! OpenMP programs, of GNU's runtime and of LLVM's, follow a number that the test says.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Answering, Teller, compile};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// What all loops of the program sum up to, whatever the number of threads.
const SUM: i64 = 6 * 499_500 + 3 + 1;

const COMPILERS: [&[&str]; 2] = [&["gcc", "-fopenmp"], &["clang-19", "-fopenmp"]];

/// Runs a test with each compiler's program.
fn with_each(options: &[&str], test: impl Fn(&PathBuf)) {
    for compiler in COMPILERS {
        let built: Option<(TempDir, PathBuf)> = compile("regions.c", compiler, options);
        if let Some((_folder, program)) = built {
            println!("with {}", compiler[0]);
            test(&program);
        }
    }
}

fn eight(program: &PathBuf) -> Command {
    let mut command = Command::new(program);
    command.env("OMP_NUM_THREADS", "8");
    command
}

#[test]
fn regions_have_as_many_threads_as_the_program_can_get_cpus() {
    with_each(&[], |program| {
        let teller = Teller::new(3);
        let mut program = Answering::start(&mut eight(program), &teller);
        for cpus in [3, 1, 7, 2] {
            teller.say(cpus);
            let seen = program.until("threads", cpus.into());
            assert_eq!((seen["before"], seen["after"], seen["sum"]), (8, 8, SUM), "{seen:?}");
        }
    });
}

#[test]
fn never_more_than_the_users_number() {
    with_each(&[], |program| {
        let teller = Teller::new(1);
        let mut following = Answering::start(&mut eight(program), &teller);
        following.until("threads", 1);
        teller.say(100);
        following.until("threads", 8);
        assert_eq!(following.ask()["threads"], 8);
        let mut set = Answering::start(eight(program).arg("set"), &teller);
        set.until("threads", 3);
        assert_eq!(set.ask()["threads"], 3);
    });
}

#[test]
fn a_clause_goes_first() {
    with_each(&[], |program| {
        let teller = Teller::new(2);
        let mut program = Answering::start(&mut eight(program), &teller);
        assert_eq!(program.until("threads", 2)["clause"], 5);
    });
}

#[test]
fn regions_within_regions_keep_their_number() {
    with_each(&[], |program| {
        let teller = Teller::new(2);
        let mut command = eight(program);
        command.env("OMP_NUM_THREADS", "4,3").env("OMP_MAX_ACTIVE_LEVELS", "2");
        let mut program = Answering::start(&mut command, &teller);
        let seen = program.until("threads", 2);
        assert_eq!((seen["inner"], seen["sum"]), (3, SUM), "{seen:?}");
    });
}

#[test]
fn hands_are_off_where_threads_are_bound_or_their_number_is_fixed() {
    with_each(&[], |program| {
        let teller = Teller::new(2);
        for (name, value) in [
            ("OMP_PROC_BIND", "true"),
            ("OMP_PLACES", "threads"),
            ("GOMP_CPU_AFFINITY", "0"),
            ("OMP_DYNAMIC", "false"),
        ] {
            let mut program = Answering::start(eight(program).env(name, value), &teller);
            for _ in 0..20 {
                assert_eq!(program.ask()["threads"], 8, "{name}={value}");
            }
        }
        let mut fixed = Answering::start(eight(program).arg("static"), &teller);
        (0..20).for_each(|_| assert_eq!(fixed.ask()["threads"], 8));
    });
}

#[test]
fn a_program_that_binds_itself_is_left_alone() {
    if rustix::thread::sched_getaffinity(None).unwrap().count() < 2 {
        println!("skipped: every mask is that of the one CPU");
        return;
    }
    with_each(&[], |program| {
        let teller = Teller::new(2);
        let mut program = Answering::start(eight(program).arg("bind"), &teller);
        (0..20).for_each(|_| assert_eq!(program.ask()["threads"], 8));
    });
}

#[test]
fn data_that_the_program_keeps_in_threads_survives() {
    with_each(&["-DTHREADPRIVATE"], |program| {
        let teller = Teller::new(2);
        let mut program = Answering::start(&mut eight(program), &teller);
        for (count, cpus) in (1..).zip([2, 5, 1, 4]) {
            teller.say(cpus);
            let seen = program.ask();
            assert_eq!((seen["threads"], seen["kept"]), (8, count));
        }
    });
}

#[test]
fn a_child_follows_by_a_page_of_its_own() {
    with_each(&[], |program| {
        let teller = Teller::new(3);
        let mut child = Answering::start(eight(program).arg("fork"), &teller);
        child.until("threads", 3);
        teller.say(2);
        child.until("threads", 2);
        assert_eq!(teller.pages().len(), 1);
    });
}

#[test]
fn the_page_says_which_runtime_follows() {
    for (compiler, runtime) in COMPILERS.into_iter().zip(["gnu", "llvm"]) {
        let Some((_folder, program)) = compile("regions.c", compiler, &[]) else { continue };
        let teller = Teller::new(3);
        let mut program = Answering::start(&mut eight(&program), &teller);
        program.until("threads", 3);
        let page = teller.pages()[0];
        assert_eq!((page.runtimes().collect::<Vec<_>>(), page.want, page.state), (vec![runtime], 8, 0));
    }
}

#[test]
fn a_task_runs_within_the_fragment_of_its_affinity_clause() {
    let Some((_folder, program)) = compile("affinity.c", &["clang-19", "-fopenmp"], &[]) else { return };
    let run = |fragments| {
        let mut command = eight(&program);
        let teller = Teller::new(8);
        command.env("HEARTH_DIR", teller.folder.path()).env("LD_PRELOAD", common::LIBRARY);
        let output = command.env("HEARTH_FRAGMENTS", fragments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let sum = String::from_utf8(output.stdout).unwrap();
        assert_eq!(sum.trim(), (100 * 1000 + 100).to_string());
        String::from_utf8(output.stderr).unwrap()
    };
    let said = run("explain");
    assert!(said.contains("hearth: 200 enters"), "{said}");
    assert_eq!(said.matches("hearth: fragment 0x4").count(), 4, "a fragment for each shard: {said}");
    assert_eq!(run("off"), "");
}
