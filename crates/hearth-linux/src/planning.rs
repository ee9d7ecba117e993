//! The thread that plans: snapshot, controller, publication, again and again.
//!
//! It shares with the daemon what it tells, and nothing else: no client of the daemon delays it, and a planner
//! that panics, errs or never returns leaves plain scheduling, for each plan holds for a few steps only.

use crate::board::{Board, board};
use crate::isolation::Isolating;
use crate::object::Layout;
use crate::programs::Programs;
use crate::{Error, Scheduler, Snapshots};
use hearth_abi::Outcome;
use hearth_host::clock::{now_ns, thread_cpu_time};
use hearth_host::planner::Account;
use hearth_host::times::{Pass, TaskTimes, Times};
use hearth_machine::host::HostTopology;
use hearth_policy::snapshot::Task;
use hearth_policy::{Controller, Plan, Planner, Snapshot};
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// From one step to the next is at least so many times what a step takes of a CPU: two per cent of one go
/// into planning, at most, unless a step takes more than 20 ms.
const STEP_TO_TAKEN: u32 = 50;

/// From one step to the next, at most.
const LONGEST_STEP: Duration = Duration::from_secs(1);

/// For tests: see [`Stuck`].
const STEPS_TO_STALL: u32 = 10;

/// What the planner did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannerStatus {
    /// The planner's name.
    pub name: String,
    /// Its steps.
    #[serde(flatten)]
    pub account: Account,
    /// What the last one took: the snapshot, the plan and its publication, in seconds.
    pub took_s: f64,
    /// Of this, the snapshot.
    pub snapshot_s: f64,
    /// Tasks in the snapshot.
    pub tasks: usize,
    /// How often a plan was published that was another than before, or was dropped.
    pub sequence: u64,
    /// Whether the plan still holds.
    pub holds: bool,
    /// The parts of the machine, each a list of CPUs; none if it is undivided.
    pub parts: Vec<Vec<usize>>,
    /// Rows of time; 0 if nothing runs by rows.
    #[serde(default)]
    pub rows: usize,
    /// How long each is, in seconds.
    #[serde(default)]
    pub row_s: f64,
    /// Tasks and groups of which the plan says something.
    pub targets: usize,
    /// Why the last step led to no plan.
    pub failure: Option<String>,
}

/// What a thread needs to reach a scheduler.
#[derive(Debug)]
pub(crate) struct Reach {
    task_ctxs: OwnedFd,
    data: OwnedFd,
    layout: Layout,
    host: HostTopology,
    is_partial: bool,
}

impl Reach {
    pub(crate) fn new(scheduler: &Scheduler, host: HostTopology, is_partial: bool) -> Result<Self, Error> {
        let (task_ctxs, data, layout) = scheduler.maps();
        let own = |fd: std::os::fd::BorrowedFd<'_>| {
            fd.try_clone_to_owned().map_err(|error| Error::refused("share maps", error.into()))
        };
        Ok(Self { task_ctxs: own(task_ctxs)?, data: own(data)?, layout, host, is_partial })
    }
}

/// The road between tasks and who schedules them, in both directions.
pub(crate) trait Road {
    fn snapshot(&mut self) -> Result<Snapshot, Error>;
    fn publish(&mut self, snapshot: &Snapshot, plan: &Plan, until_ns: u64) -> (Outcome, u64);
}

/// What is known of tasks beside what the scheduler says.
pub(crate) struct Beside {
    pub(crate) programs: Programs,
    pub(crate) times: Times,
    /// Begins to count for who is to be isolated.
    pub(crate) isolation: Option<Box<dyn Fn() -> Isolating + Send>>,
}

struct KernelRoad {
    snapshots: Snapshots,
    board: Board,
    programs: Programs,
    /// For services: none where the scheduler has some tasks only.
    times: Option<Times>,
    isolating: Option<Isolating>,
}

impl KernelRoad {
    fn open(reach: &Reach, beside: &Beside) -> Result<Self, Error> {
        let snapshots = Snapshots::load(&reach.host, Some(reach.task_ctxs.as_fd()), reach.is_partial)?;
        let board = board(reach.data.as_fd(), reach.layout, &reach.host)?;
        crate::memory::give_back();
        let times = (!reach.is_partial).then(|| beside.times.clone());
        let isolating = beside.isolation.as_ref().map(|begin| begin());
        Ok(Self { snapshots, board, programs: beside.programs.clone(), times, isolating })
    }
}

impl Road for KernelRoad {
    fn snapshot(&mut self) -> Result<Snapshot, Error> {
        let mut snapshot = self.snapshots.take()?;
        self.times.iter().for_each(|times| times.tell(pass(&snapshot)));
        self.programs.follow(&mut snapshot);
        self.isolating.iter_mut().for_each(|isolating| isolating.follow(&mut snapshot));
        Ok(snapshot)
    }

    fn publish(&mut self, snapshot: &Snapshot, plan: &Plan, until_ns: u64) -> (Outcome, u64) {
        self.programs.note(snapshot, plan);
        if let Some(isolating) = &self.isolating {
            isolating.tell(isolating.groups(snapshot, plan).into_values());
        }
        (self.board.publish(plan, until_ns), self.board.published().sequence)
    }
}

fn pass(snapshot: &Snapshot) -> Pass {
    let times = |task: &Task| TaskTimes {
        tid: task.tid,
        process: task.process,
        ran_ns: task.ran_ns,
        waited_ns: task.waited_ns,
    };
    Pass { at_ns: snapshot.at_ns, tasks: snapshot.tasks.iter().map(times).collect() }
}

/// For tests: plans nothing, and after some steps it never returns.
#[derive(Debug, Default)]
pub(crate) struct Stuck(u32);

impl Planner for Stuck {
    fn name(&self) -> &'static str {
        "stuck"
    }

    fn plan(&mut self, _: &Snapshot, _: &mut Plan) {
        self.0 += 1;
        if self.0 > STEPS_TO_STALL {
            loop {
                thread::park();
            }
        }
    }
}

/// What the thread tells.
#[derive(Debug, Default)]
struct Told {
    status: PlannerStatus,
    ended: Option<Instant>,
    /// How long the last plan holds.
    holds_for: Duration,
}

type Shared = Arc<Mutex<Told>>;

fn lock(told: &Shared) -> MutexGuard<'_, Told> {
    // A panic in between leaves numbers of two steps, which harm nobody.
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread, at work until this is dropped. A planner that never returns keeps its thread until the
/// process ends.
#[derive(Debug)]
pub(crate) struct Planning {
    reaches: Sender<Reach>,
    told: Shared,
}

impl Planning {
    /// Begins a thread that plans for each scheduler that it is given.
    pub(crate) fn begin(controller: Controller, beside: Beside) -> Result<Self, Error> {
        Self::spawn(controller, move |received, controller, told| serve(received, controller, &beside, told))
    }

    /// Begins a thread that plans on one road.
    pub(crate) fn on(controller: Controller, mut road: impl Road + Send + 'static) -> Result<Self, Error> {
        Self::spawn(controller, move |received, mut controller, told| {
            steps(received, &mut controller, &mut road, told);
        })
    }

    fn spawn(
        controller: Controller,
        plan: impl FnOnce(&Receiver<Reach>, Controller, &Shared) + Send + 'static,
    ) -> Result<Self, Error> {
        let (reaches, received) = mpsc::channel();
        let name = controller.names().collect::<Vec<_>>().join(",");
        let status = PlannerStatus { name, ..PlannerStatus::default() };
        let told = Arc::new(Mutex::new(Told { status, ..Told::default() }));
        let shared = Arc::clone(&told);
        thread::Builder::new()
            .name("planner".into())
            .spawn(move || plan(&received, controller, &shared))
            .map_err(|error| Error::refused("begin planning", error.into()))?;
        Ok(Self { reaches, told })
    }

    /// Has it plan for this scheduler from now on.
    pub(crate) fn reach(&self, reach: Reach) {
        // If the thread has ended, what it tells says why.
        let _ = self.reaches.send(reach);
    }

    /// What it did.
    pub(crate) fn status(&self) -> PlannerStatus {
        let told = lock(&self.told);
        let age = told.ended.map(|ended| ended.elapsed());
        let holds = told.status.holds && age.is_some_and(|age| age < told.holds_for);
        let account = Account { age_s: age.map(|age| age.as_secs_f64()), ..told.status.account.clone() };
        PlannerStatus { account, holds, ..told.status.clone() }
    }
}

/// Plans for one scheduler after the other, until there will be no more.
fn serve(reaches: &Receiver<Reach>, mut controller: Controller, beside: &Beside, told: &Shared) {
    let Ok(mut reach) = reaches.recv() else { return };
    loop {
        let next = match KernelRoad::open(&reach, beside) {
            Ok(mut road) => steps(reaches, &mut controller, &mut road, told),
            Err(error) => {
                lock(told).status.failure = Some(error.to_string());
                reaches.recv().ok()
            }
        };
        let Some(next) = next else { return };
        reach = next;
    }
}

/// Steps, until there is another scheduler, none, or no planner any more.
fn steps<T>(
    ended: &Receiver<T>,
    controller: &mut Controller,
    road: &mut impl Road,
    told: &Shared,
) -> Option<T> {
    loop {
        let (begin, cpu_begin) = (Instant::now(), thread_cpu_time());
        let result = step(controller, road, told);
        let taken = thread_cpu_time().saturating_sub(cpu_begin);
        lock(told).status.account.cpu_s += taken.as_secs_f64();
        if let Err(failure) = result {
            let mut told = lock(told);
            told.status.account.refused += 1;
            (told.status.failure, told.status.holds) = (Some(failure.why), false);
            if failure.is_final {
                return None;
            }
        }
        let interval = interval(taken);
        match ended.recv_timeout(interval.saturating_sub(begin.elapsed())) {
            Ok(next) => return Some(next),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// From the begin of a step that takes so much of a CPU to that of the next.
fn interval(taken: Duration) -> Duration {
    (taken * STEP_TO_TAKEN).clamp(Controller::STEP, LONGEST_STEP)
}

/// Why there is no plan.
struct Failure {
    why: String,
    /// Whether there will be none.
    is_final: bool,
}

impl Failure {
    fn of(why: impl ToString) -> Self {
        Self { why: why.to_string(), is_final: false }
    }
}

fn step(controller: &mut Controller, road: &mut impl Road, told: &Shared) -> Result<(), Failure> {
    let (begin, cpu_begin) = (Instant::now(), thread_cpu_time());
    let snapshot = road.snapshot().map_err(Failure::of)?;
    let snapshot_s = begin.elapsed().as_secs_f64();
    let plan = catch_unwind(AssertUnwindSafe(|| controller.step(&snapshot)))
        .map_err(|_| Failure {
            why: "the planner panicked; there will be no more plans".into(),
            is_final: true,
        })?
        .map_err(Failure::of)?;
    let holds_for = interval(thread_cpu_time().saturating_sub(cpu_begin)) * Controller::STEPS_TO_HOLD;
    // The clock by which the scheduler reads plans.
    let until_ns = now_ns() + holds_for.as_nanos() as u64;
    let (outcome, sequence) = road.publish(&snapshot, &plan, until_ns);
    let mut told = lock(told);
    let status = &mut told.status;
    status.account.steps += 1;
    status.account.published += u64::from(outcome == Outcome::Published);
    status.took_s = begin.elapsed().as_secs_f64();
    (status.snapshot_s, status.tasks, status.sequence) = (snapshot_s, snapshot.tasks.len(), sequence);
    (status.holds, status.failure) = (true, None);
    if outcome != Outcome::Postponed {
        status.targets = plan.tasks.len() + plan.groups.len();
        (status.rows, status.row_s) = (plan.rows.count, plan.rows.length_ns as f64 / 1e9);
        status.parts = plan.parts;
    }
    (told.ended, told.holds_for) = (Some(Instant::now()), holds_for);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_policy::Target;

    /// Does as its steps say, the last one for ever.
    #[derive(Clone, Copy)]
    enum Does {
        Plans,
        Errs,
        Panics,
    }

    struct Scripted(Vec<Does>);

    impl Planner for Scripted {
        fn name(&self) -> &'static str {
            "scripted"
        }

        fn plan(&mut self, _: &Snapshot, plan: &mut Plan) {
            let does = if self.0.len() > 1 { self.0.remove(0) } else { self.0[0] };
            match does {
                Does::Plans => {}
                Does::Errs => drop(plan.tasks.insert(1, Target::at_home(99))),
                Does::Panics => panic!("as the test wants it"),
            }
        }
    }

    /// A machine whose plans are remembered; the loop ends after so many snapshots.
    struct Remembering {
        left: usize,
        end: Option<Sender<()>>,
        published: Vec<Plan>,
    }

    impl Road for Remembering {
        fn snapshot(&mut self) -> Result<Snapshot, Error> {
            self.left -= 1;
            if self.left == 0 {
                self.end = None;
            }
            Ok(Snapshot::new(0, [(0, 0, 0)]))
        }

        fn publish(&mut self, _: &Snapshot, plan: &Plan, _: u64) -> (Outcome, u64) {
            self.published.push(plan.clone());
            (Outcome::Published, self.published.len() as u64)
        }
    }

    fn told_after(does: &[Does]) -> (PlannerStatus, usize) {
        let (end, ended) = mpsc::channel::<()>();
        let mut road = Remembering { left: does.len(), end: Some(end), published: Vec::new() };
        let mut controller = Controller::new(vec![Box::new(Scripted(does.to_vec()))]);
        let told = Shared::default();
        assert_eq!(steps(&ended, &mut controller, &mut road, &told), None);
        let status = lock(&told).status.clone();
        (status, road.published.len())
    }

    #[test]
    fn every_step_is_told() {
        let (status, published) = told_after(&[Does::Plans, Does::Plans]);
        let Account { steps, refused, .. } = status.account;
        assert_eq!((steps, status.account.published, refused, status.sequence, published), (2, 2, 0, 2, 2));
        assert!(status.holds && status.failure.is_none());
    }

    #[test]
    fn a_wrong_plan_is_never_published_and_the_next_step_may_plan_again() {
        let (status, published) = told_after(&[Does::Plans, Does::Errs]);
        assert_eq!((status.account.steps, published, status.holds), (1, 1, false));
        assert_eq!((status.account.published, status.account.refused), (1, 1));
        assert!(status.failure.unwrap().contains("CPU 99"));
        let (status, published) = told_after(&[Does::Errs, Does::Plans]);
        assert_eq!((status.account.steps, published, status.failure), (1, 1, None));
    }

    #[test]
    fn a_planner_that_panics_plans_no_more() {
        let (status, published) = told_after(&[Does::Plans, Does::Panics, Does::Plans]);
        assert_eq!((status.account.steps, published, status.holds), (1, 1, false));
        assert!(status.failure.unwrap().contains("no more plans"));
    }
}
