//! Programs of libraries that have threads of their own follow a number that the test says.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Answering, Teller, compile};
use std::path::Path;
use std::process::Command;

/// 0.5 * 2 + 2 * 64.
const PRODUCT: i64 = 129;

/// A machine of one CPU has nothing to follow.
fn cpus() -> i64 {
    rustix::thread::sched_getaffinity(None).unwrap().count().into()
}

fn openblas(arguments: &[&str], environment: &[(&str, &str)], teller: &Teller) -> Option<Answering> {
    let (_folder, program) = compile("blas.c", &["gcc"], &["-lopenblas"])?;
    Some(Answering::start(Command::new(program).args(arguments).envs(environment.iter().copied()), teller))
}

#[test]
fn openblas_follows_and_computes_the_same() {
    let teller = Teller::new(1);
    let Some(mut program) = openblas(&[], &[], &teller) else { return };
    for told in [1, 100, 1] {
        teller.say(told);
        assert_eq!(program.until("threads", cpus().min(told.into()))["sum"], PRODUCT);
    }
    let page = teller.pages()[0];
    assert_eq!((page.runtimes().collect::<Vec<_>>(), i64::from(page.want)), (vec!["blas"], cpus()));
}

#[test]
fn openblas_is_left_alone_where_somebody_else_has_set_its_number() {
    let teller = Teller::new(1);
    let users = cpus().min(2);
    let Some(mut told) = openblas(&[], &[("OPENBLAS_NUM_THREADS", "2")], &teller) else { return };
    (0..20).for_each(|_| assert_eq!(told.ask()["threads"], users));
    let Some(mut sets) = openblas(&["set"], &[], &teller) else { return };
    sets.until("threads", 3);
    (0..20).for_each(|_| assert_eq!(sets.ask()["threads"], 3));
}

#[test]
fn blis_follows() {
    let Some((_folder, program)) = compile("blas.c", &["gcc", "-DBLIS"], &["-lblis"]) else { return };
    let teller = Teller::new(1);
    let mut program = Answering::start(Command::new(program).env("OMP_NUM_THREADS", "6"), &teller);
    for cpus in [1, 4, 2] {
        teller.say(cpus);
        assert_eq!(program.until("threads", cpus.into())["sum"], PRODUCT);
    }
}

fn tbb(arguments: &[&str], teller: &Teller) -> Option<Answering> {
    let (_folder, program) = compile("tasks.cpp", &["g++", "-std=c++17"], &["-ltbb"])?;
    Some(Answering::start(Command::new(program).args(arguments), teller))
}

#[test]
fn onetbb_follows_up_to_its_own_number() {
    let teller = Teller::new(1);
    let Some(mut program) = tbb(&[], &teller) else { return };
    assert_eq!(program.until("threads", 1)["sum"], 499_500);
    teller.say(100);
    program.until("threads", cpus());
    teller.say(1);
    program.until("threads", 1);
}

#[test]
fn a_limit_of_the_programs_own_holds_in_onetbb() {
    let teller = Teller::new(1);
    let Some(mut program) = tbb(&["limit"], &teller) else { return };
    program.until("threads", 1);
    teller.say(100);
    program.until("threads", 3);
}

#[test]
fn a_module_that_brings_its_own_runtime_follows() {
    let python = Path::new("/usr/bin/python3");
    let modules = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/module.py");
    let Some((folder, library)) = compile("module.c", &["gcc", "-fopenmp"], &["-shared", "-fPIC"]) else {
        return;
    };
    if !python.exists() {
        println!("skipped: no {}", python.display());
        return;
    }
    let teller = Teller::new(3);
    let mut command = Command::new(python);
    command.arg(modules).arg(&library).env("OMP_NUM_THREADS", "8");
    let mut program = Answering::start(&mut command, &teller);
    program.until("threads", 3);
    teller.say(2);
    program.until("threads", 2);
    drop(folder);
}
