//! Gangs on the simulated machine: rows of time, and what runs in them.

#![allow(clippy::unwrap_used)]

use hearth_machine::CpuSet;
use hearth_machine::Machine;
use hearth_policy::planners::Planner;
use hearth_policy::{Controller, Plan, Policy, Rows, Snapshot, Target};
use hearth_sim::measure::Stretch;
use hearth_sim::{Application, Cpu, Options, RunResult, Simulation};

const MS: u64 = 1_000_000;
const CYCLES_A_MS: u64 = 33_000;
const CPUS: usize = 4;
/// Slices end at ticks.
const TICK_NS: u64 = 10 * MS;

/// A matrix: for each row the groups of which it has a member in each column, in the order of their tasks.
struct Matrix {
    rows: Vec<Vec<u64>>,
    length_ns: u64,
}

impl Planner for Matrix {
    fn name(&self) -> &'static str {
        "matrix"
    }

    fn plan(&mut self, snapshot: &Snapshot, plan: &mut Plan) {
        plan.rows = Rows { count: self.rows.len(), length_ns: self.length_ns };
        for (row, groups) in self.rows.iter().enumerate() {
            for group in groups {
                let mut tids: Vec<i32> =
                    snapshot.tasks.iter().filter(|task| task.group == *group).map(|task| task.tid).collect();
                tids.sort_unstable();
                for (column, tid) in tids.into_iter().enumerate() {
                    plan.tasks.insert(tid, Target { row: Some(row), ..Target::at_home(column) });
                }
            }
        }
    }
}

fn matrix(rows: &[&[u64]], length_ms: u64) -> Controller {
    let rows = rows.iter().map(|groups| groups.to_vec()).collect();
    Controller::new(vec![Box::new(Matrix { rows, length_ns: length_ms * MS })])
}

fn spin(cpu: &mut Cpu<'_>, ms: u64) {
    (0..ms).for_each(|_| cpu.compute(CYCLES_A_MS));
}

fn spinners(name: &str, count: usize, ms: u64) -> Application {
    let mut application = Application::new(name);
    (0..count).for_each(|_| application.task("spin", move |cpu| spin(cpu, ms)));
    application
}

fn run(policy: &str, applications: Vec<Application>, controller: Controller) -> RunResult {
    let machine = Machine::load("sgi-4d340").unwrap();
    let options = Options { timeline: true, ..Options::default() };
    let mut simulation = Simulation::new(&machine, &Policy::load(policy).unwrap(), &options).unwrap();
    simulation.plan_with(controller).unwrap();
    applications.into_iter().for_each(|application| simulation.add(application));
    simulation.run().unwrap_or_else(|error| panic!("{error}"))
}

/// The application that ran on each CPU, each millisecond of some time.
fn each_ms(result: &RunResult, from_ms: u64, until_ms: u64) -> Vec<[Option<usize>; CPUS]> {
    let mut moments = vec![[None; CPUS]; (until_ms - from_ms) as usize];
    for Stretch { cpu, task, start_ns, end_ns } in &result.timeline {
        let first = start_ns.div_ceil(MS).max(from_ms);
        for ms in first..end_ns.div_ceil(MS).min(until_ms) {
            moments[(ms - from_ms) as usize][*cpu] = Some(result.tasks[*task].application);
        }
    }
    moments
}

/// The share of moments at which all CPUs run tasks of this application.
fn together(moments: &[[Option<usize>; CPUS]], application: usize) -> f64 {
    let all = moments.iter().filter(|cpus| cpus.iter().all(|ran| *ran == Some(application))).count();
    all as f64 / moments.len() as f64
}

fn share(moments: &[[Option<usize>; CPUS]], application: usize) -> f64 {
    let ran = moments.iter().flatten().filter(|ran| **ran == Some(application)).count();
    ran as f64 / (moments.len() * CPUS) as f64
}

#[test]
fn members_of_a_gang_run_at_the_same_time_and_each_gang_has_its_share() {
    for policy in ["standard", "fair", "both", "complex"] {
        let all = || vec![spinners("a", CPUS, 1500), spinners("b", CPUS, 1500), spinners("others", 3, 1500)];
        let result = run(policy, all(), matrix(&[&[1], &[2], &[]], 100));
        let moments = each_ms(&result, 300, 2700);
        for gang in 0..2 {
            let together = 3.0 * together(&moments, gang);
            assert!(together > 0.95, "{policy}: gang {gang} is together for {together} of its row");
        }
        // A row each, a quarter of the others' being a hole that both gangs fill.
        for (application, least) in [0.32, 0.32, 0.22].into_iter().enumerate() {
            let share = share(&moments, application);
            assert!(
                (least..least + 0.11).contains(&share),
                "{policy}: {application} has {share} of the machine"
            );
        }
        let without = 3.0 * together(&each_ms(&run(policy, all(), matrix(&[], 0)), 300, 2700), 0);
        assert!(
            without < 0.8,
            "{policy}: without rows they are together for {without} of a third of the time"
        );
    }
}

#[test]
fn rows_change_on_all_cpus_at_once() {
    let applications = vec![spinners("a", CPUS, 1500), spinners("b", CPUS, 1500)];
    let result = run("fair", applications, matrix(&[&[1], &[2]], 100));
    let of = |stretch: &Stretch| result.tasks[stretch.task].application;
    let begins: Vec<Vec<u64>> = (0..CPUS)
        .map(|cpu| {
            let mut own: Vec<_> = result.timeline.iter().filter(|stretch| stretch.cpu == cpu).collect();
            own.sort_by_key(|stretch| stretch.start_ns);
            let changes = own.windows(2).filter(|pair| of(pair[0]) != of(pair[1]));
            let at = changes.map(|pair| pair[1].start_ns);
            at.filter(|at| (300 * MS..2300 * MS).contains(at)).collect()
        })
        .collect();
    assert!(begins[0].len() >= 15, "{begins:?}");
    for row in 0..begins[0].len() {
        let at: Vec<u64> = begins.iter().map(|begins| begins[row]).collect();
        let (first, last) = (at.iter().min().unwrap(), at.iter().max().unwrap());
        assert!(last - first < MS, "row {row} begins at {at:?}");
    }
    let counted: u64 = result.dispatches.iter().map(|of_cpu| of_cpu.members).sum();
    let least = (begins[0].len() * CPUS) as u64;
    assert!((least..2 * least).contains(&counted), "{counted} of {least} or a few more");
}

#[test]
fn a_hole_is_filled_and_gives_way_when_its_member_wakes() {
    // The gang's members sleep for 20 ms of each 40; others would like the machine for themselves.
    let mut gang = Application::new("gang");
    for _ in 0..CPUS {
        gang.task("sleeper", |cpu: &mut Cpu<'_>| {
            for _ in 0..50 {
                spin(cpu, 20);
                cpu.sleep_ns(20 * MS);
            }
        });
    }
    let result = run("fair", vec![gang, spinners("others", CPUS, 1800)], matrix(&[&[1]], 100));
    let moments = each_ms(&result, 300, 1800);
    let idle = moments.iter().flatten().filter(|ran| ran.is_none()).count();
    assert!(idle < moments.len() * CPUS / 50, "{idle} moments of {} are idle", moments.len() * CPUS);
    // Half of the time is the gang's, all of which it gets: it never waits for a slice of the others.
    let share = share(&moments, 0);
    assert!(share > 0.46, "{share}");
}

#[test]
fn a_row_without_members_is_everybody_elses_time() {
    let applications = vec![spinners("gang", CPUS, 1500), spinners("others", 3 * CPUS, 400)];
    let result = run("fair", applications, matrix(&[&[1], &[]], 50));
    let moments = each_ms(&result, 300, 2000);
    let share = share(&moments, 0);
    assert!((0.45..0.60).contains(&share), "{share}");
}

#[test]
fn no_cpu_idles_beside_a_member_whose_row_does_not_run() {
    // Each of two gangs has one member, in the same column.
    let applications = vec![spinners("a", 1, 1000), spinners("b", 1, 1000)];
    let result = run("fair", applications, matrix(&[&[1], &[2]], 100));
    assert!(result.elapsed_ns < 1000 * MS + 10 * TICK_NS, "{} ms", result.elapsed_ns / MS);
}

#[test]
fn the_kernels_thread_for_a_cpu_waits_for_no_row() {
    let gangs = || vec![spinners("a", CPUS, 1000), spinners("b", CPUS, 1000)];
    let server = |is_kernel| {
        let mut server = Application { cpus: CpuSet::one(2), is_kernel, ..Application::new("server") };
        server.task("works", |cpu: &mut Cpu<'_>| {
            for _ in 0..80 {
                cpu.sleep_ns(20 * MS);
                cpu.compute(CYCLES_A_MS);
            }
        });
        server
    };
    let wait_us = |is_kernel| {
        let mut applications = gangs();
        applications.push(server(is_kernel));
        let result = run("fair", applications, matrix(&[&[1], &[2]], 100));
        let tally = &result.applications[2].tally;
        (tally.wake_wait_ns / tally.wakeups / 1_000, together(&each_ms(&result, 300, 1500), 0))
    };
    let ((waits_us, of_gang), (bound_us, _)) = (wait_us(true), wait_us(false));
    assert!(waits_us < 1_000, "{waits_us} us");
    assert!(bound_us > 20_000, "any other task that is bound there waits: {bound_us} us");
    // It takes 5 % of one CPU.
    assert!(2.0 * of_gang > 0.85, "{of_gang}");
}
