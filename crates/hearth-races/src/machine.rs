//! The CPUs, and who of them goes on next.

use crate::kernel::Kernel;
use crate::state::{Current, Pid, Place, State, Task};
use crate::switch;
use corosensei::Coroutine;
use hearth_machine::Machine;
use hearth_native::Scheduler;
use hearth_policy::Policy;
use std::cell::Cell;
use std::fmt::{Display, Formatter};
use std::io::{Error, ErrorKind};
use std::rc::Rc;

/// Among equals a task that waits this long is forgotten: a second, as in the tests of real kernels.
const STARVED_NS: u64 = 1_000_000_000;
/// No task waits for longer, whatever the weights.
const HALF_THE_WATCHDOG_NS: u64 = 5_000_000_000;
/// How often all CPUs are brought to rest, to see whether one of them idles beside work.
const REST_NS: u64 = 50_000_000;
/// A CPU may be stopped for this many turns of the others.
const LONGEST_STALL: u32 = 400;

/// Turns after which the CPUs have come to rest, or to their end, if they ever do.
const LONGEST_END: usize = 1_000_000;

/// What is run. The same setting leads to the same run.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Number of tasks.
    pub tasks: usize,
    /// How long, in ns of the machine's time.
    pub duration_ns: u64,
    /// One in so many accesses lets other CPUs go on.
    pub switch_one_in: u32,
    /// Of everything random.
    pub seed: u64,
    /// Whether tasks change their weights and go to a higher class and back, and higher classes take
    /// CPUs.
    pub unequal: bool,
    /// Whether all CPUs tick at once.
    pub ticks_at_once: bool,
    /// How long a task may wait.
    pub longest_wait_ns: u64,
    /// Whether the scheduler has a defect, for tests of the tests: no task leaves a queue.
    pub stalls: bool,
}

impl Setting {
    /// A run in which, by its seed, every fourth to every 512th access lets other CPUs go on.
    pub fn new(tasks: usize, duration_ns: u64, seed: u64) -> Self {
        Self {
            tasks,
            duration_ns,
            switch_one_in: 1 << (2 + seed % 8),
            seed,
            unequal: false,
            ticks_at_once: false,
            longest_wait_ns: STARVED_NS,
            stalls: false,
        }
    }

    /// A run of tasks whose weights and classes change, on CPUs that higher classes take. However
    /// unequal, none may wait for half of the watchdog's time.
    pub fn unequal(tasks: usize, duration_ns: u64, seed: u64) -> Self {
        Self {
            unequal: true,
            ticks_at_once: seed & 1 == 1,
            longest_wait_ns: HALF_THE_WATCHDOG_NS,
            ..Self::new(tasks, duration_ns, seed)
        }
    }
}

/// What a run without a violation told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Times that all CPUs were at rest.
    pub rests: u64,
    /// Of these, with a CPU idle beside a task that it could run, which a tick then mended.
    pub mended_by_tick: u64,
    /// How long a task waited at most.
    pub longest_wait_ns: u64,
}

/// What must not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The scheduler did what sched_ext ends it for.
    Refused(String),
    /// A task waited for longer than any may.
    Starved {
        /// Which.
        task: i32,
        /// When it was found out.
        at_ns: u64,
    },
    /// A CPU idles, and goes on to idle after every busy CPU had a tick, although a task waits that
    /// it could run.
    IdleBesideWork {
        /// The CPU.
        cpu: usize,
        /// The task.
        task: i32,
        /// When it was found out.
        at_ns: u64,
    },
    /// A queue seems empty although tasks wait in it.
    Hidden {
        /// The CPU whose queue it is.
        cpu: usize,
        /// Whether it is the queue of tasks that are bound to the CPU.
        bound: bool,
        /// When it was found out.
        at_ns: u64,
    },
    /// No CPU can go on.
    Deadlock {
        /// When it was found out.
        at_ns: u64,
    },
}

impl Display for Violation {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let ms = |ns: &u64| *ns as f64 / 1e6;
        match self {
            Self::Refused(why) => write!(f, "the kernel would end the scheduler: {why}"),
            Self::Starved { task, at_ns } => {
                write!(f, "at {} ms task {task} has waited for too long", ms(at_ns))
            }
            Self::IdleBesideWork { cpu, task, at_ns } => {
                write!(f, "at {} ms CPU {cpu} idles although task {task} waits", ms(at_ns))
            }
            Self::Hidden { cpu, bound, at_ns } => {
                let tasks = if *bound { "bound" } else { "free" };
                write!(f, "at {} ms CPU {cpu} does not know that {tasks} tasks wait for it", ms(at_ns))
            }
            Self::Deadlock { at_ns } => write!(f, "at {} ms no CPU can go on", ms(at_ns)),
        }
    }
}

impl std::error::Error for Violation {}

type Cpu = Coroutine<(), (), ()>;

/// CPUs are bits of a number, and it must be possible to shift it by their count.
const MOST_CPUS: usize = 63;

/// Runs a policy on a machine of at most 63 CPUs. The outer error is the loader's, or that of a setting
/// that cannot be run.
pub fn run(
    machine: &Machine,
    policy: &Policy,
    setting: Setting,
) -> Result<Result<Outcome, Violation>, Error> {
    check(machine, setting).map_err(|what| Error::new(ErrorKind::InvalidInput, what))?;
    let state = Rc::new(State::new(near(machine), setting.tasks, machine.kernel.tick_ns, setting.seed));
    if setting.ticks_at_once {
        state.rqs.iter().for_each(|rq| rq.next_tick.set(machine.kernel.tick_ns));
    }
    state.switch_one_in.set(setting.switch_one_in);
    let scheduler = Scheduler::load_interleaved(&state, policy, machine, switch::access)?;
    if setting.stalls {
        scheduler.stall()?;
    }
    let kernel = Rc::new(Kernel { state: Rc::clone(&state), scheduler });
    kernel.scheduler.init();
    if setting.unequal {
        begin_unequal(&kernel);
    }
    for task in &kernel.tasks {
        kernel.scheduler.init_task(&task.sched, true);
        kernel.timers.borrow_mut().insert((0, task.sched.cpu.get() as usize, task.sched.pid));
    }
    let mut run = Run::new(kernel, policy.attached, setting);
    Ok(switch::with_accesses(&state, || run.until(setting.duration_ns)))
}

fn check(machine: &Machine, setting: Setting) -> Result<(), String> {
    match (machine.cpus(), setting) {
        (cpus, _) if cpus > MOST_CPUS => {
            Err(format!("{} has {cpus} CPUs; name a machine of at most {MOST_CPUS}", machine.name))
        }
        (_, Setting { tasks: 0, .. }) => Err("no tasks: nothing would happen; give at least 1".to_owned()),
        (_, Setting { switch_one_in: 0, .. }) => {
            Err("one in 0 accesses: give at least 1, for every access".to_owned())
        }
        _ => Ok(()),
    }
}

/// For each CPU: those of its cache domain and of its node, as bits.
fn near(machine: &Machine) -> Vec<[u64; 2]> {
    let bits = |is_near: &dyn Fn(usize) -> bool| {
        (0..machine.cpus()).filter(|&cpu| is_near(cpu)).fold(0, |bits, cpu| bits | 1 << cpu)
    };
    let of = |cpu: usize| {
        let domain = machine.domain_cpus();
        [
            bits(&|other| other / domain == cpu / domain),
            bits(&|other| machine.node_of(other) == machine.node_of(cpu)),
        ]
    };
    (0..machine.cpus()).map(of).collect()
}

struct Run {
    kernel: Rc<Kernel>,
    /// By its policy a task runs on one CPU only.
    is_attached: bool,
    longest_wait_ns: u64,
    cpus: Vec<Cpu>,
    /// Turns for which a CPU is stopped.
    stalled: Vec<u32>,
    /// All CPUs shall come to rest: tasks do nothing new, and no time passes.
    is_resting: Rc<Cell<bool>>,
    /// CPUs shall end at their next turn: none may be left in the middle of the scheduler's code.
    is_over: Rc<Cell<bool>>,
    outcome: Outcome,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.is_over.set(true);
        for _ in 0..LONGEST_END {
            for cpu in self.cpus.iter_mut().filter(|cpu| !cpu.done()) {
                cpu.resume(());
                switch::leave();
            }
            if self.cpus.iter().all(Coroutine::done) {
                return;
            }
        }
        // They wait for each other for ever.
        std::mem::forget(std::mem::take(&mut self.cpus));
    }
}

impl Run {
    fn new(kernel: Rc<Kernel>, is_attached: bool, setting: Setting) -> Self {
        let (is_resting, is_over) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
        let habits = Habits::any(&kernel, setting.unequal);
        let longest_wait_ns = setting.longest_wait_ns;
        let cpu = |cpu| {
            let (kernel, is_resting, is_over) =
                (Rc::clone(&kernel), Rc::clone(&is_resting), Rc::clone(&is_over));
            Coroutine::new(move |yielder, ()| {
                switch::enter(yielder);
                kernel.cpu.set(cpu);
                while !is_over.get() {
                    turn(&kernel, cpu, habits, &is_resting);
                }
            })
        };
        let cpus = (0..kernel.rqs.len()).map(cpu).collect();
        let stalled = vec![0; kernel.rqs.len()];
        let outcome = Outcome::default();
        Self { kernel, is_attached, longest_wait_ns, cpus, stalled, is_resting, is_over, outcome }
    }

    fn until(&mut self, end_ns: u64) -> Result<Outcome, Violation> {
        let mut next_rest = REST_NS;
        while self.kernel.now_ns.get() < end_ns {
            self.step()?;
            if self.kernel.now_ns.get() >= next_rest {
                next_rest = self.kernel.now_ns.get() + REST_NS;
                self.check_waits()?;
                self.check_idle()?;
            }
        }
        Ok(self.outcome)
    }

    /// One CPU goes on, up to where it lets others.
    fn step(&mut self) -> Result<(), Violation> {
        let cpus = self.cpus.len() as u32;
        let kernel = &self.kernel;
        if kernel.is_at_rest() {
            // All idle: on to the next timer.
            let next = kernel.timers.borrow().first().map(|timer| timer.0);
            let Some(next) = next else { return Err(Violation::Deadlock { at_ns: kernel.now_ns.get() }) };
            kernel.now_ns.set(kernel.now_ns.get().max(next));
        }
        let cpu = kernel.random(cpus) as usize;
        if self.stalled[cpu] > 0 {
            self.stalled[cpu] -= 1;
            return Ok(());
        }
        if kernel.random(1000) == 0 && !self.is_resting.get() {
            self.stalled[cpu] = kernel.random(LONGEST_STALL);
        }
        self.resume(cpu)
    }

    fn resume(&mut self, cpu: usize) -> Result<(), Violation> {
        self.cpus[cpu].resume(());
        switch::leave();
        self.kernel.error.take().map_or(Ok(()), |error| Err(Violation::Refused(error)))
    }

    fn check_waits(&mut self) -> Result<(), Violation> {
        let at_ns = self.kernel.now_ns.get();
        for (pid, task) in self.kernel.tasks.iter().enumerate() {
            let is_waiting = task.on_rq.get() && task.sched.on_cpu.get() == 0 && !self.is_held(task);
            let waited = if is_waiting { at_ns.saturating_sub(task.waits_since.get()) } else { 0 };
            if waited > self.longest_wait_ns {
                return Err(Violation::Starved { task: pid as Pid, at_ns });
            }
            self.outcome.longest_wait_ns = self.outcome.longest_wait_ns.max(waited);
        }
        Ok(())
    }

    /// Whether a higher class holds the only CPU that it may run on.
    fn is_held(&self, task: &Task) -> bool {
        let (allowed, cpu) = (task.sched.allowed(), task.sched.cpu.get() as usize);
        let is_stuck = allowed.count_ones() == 1 || self.is_attached;
        is_stuck && self.kernel.rqs[cpu].current.get() == Current::Higher
    }

    /// With all CPUs at rest, none idles beside work that it could do.
    fn check_idle(&mut self) -> Result<(), Violation> {
        self.is_resting.set(true);
        self.rest()?;
        self.outcome.rests += 1;
        self.check_heads()?;
        if self.idle_beside_work().is_some() {
            self.outcome.mended_by_tick += 1;
            let now = self.kernel.now_ns.get();
            self.kernel.rqs.iter().for_each(|rq| rq.next_tick.set(now));
            self.rest()?;
            if let Some((cpu, task)) = self.idle_beside_work() {
                return Err(Violation::IdleBesideWork { cpu, task, at_ns: now });
            }
        }
        self.is_resting.set(false);
        self.kernel.rqs.iter().for_each(|rq| rq.is_settled.set(false));
        Ok(())
    }

    fn check_heads(&self) -> Result<(), Violation> {
        let refused = |error: Error| Violation::Refused(error.to_string());
        for cpu in 0..self.cpus.len() {
            for bound in [false, true] {
                if self.kernel.has_waiting(cpu, bound)
                    && !self.kernel.scheduler.has_head(cpu, bound).map_err(refused)?
                {
                    return Err(Violation::Hidden { cpu, bound, at_ns: self.kernel.now_ns.get() });
                }
            }
        }
        Ok(())
    }

    /// A CPU that has nothing to do although a task waits that it could run, and the task.
    fn idle_beside_work(&self) -> Option<(usize, Pid)> {
        let kernel = &self.kernel;
        let waits = |task: &&Task| matches!(task.place.get(), Place::Queue { .. });
        kernel.tasks.iter().filter(waits).find_map(|task| {
            let cpus = if self.is_attached { 1 << task.sched.cpu.get() } else { task.sched.allowed() };
            let is_idle =
                |cpu: &usize| kernel.rqs[*cpu].current.get() == Current::Idle && cpus >> cpu & 1 == 1;
            (0..kernel.rqs.len()).find(is_idle).map(|cpu| (cpu, task.sched.pid))
        })
    }

    fn rest(&mut self) -> Result<(), Violation> {
        self.stalled.fill(0);
        for _ in 0..LONGEST_END * self.cpus.len() {
            if self.kernel.is_at_rest() {
                return Ok(());
            }
            let cpu = self.kernel.random(self.cpus.len() as u32) as usize;
            self.resume(cpu)?;
        }
        Err(Violation::Deadlock { at_ns: self.kernel.now_ns.get() })
    }
}

/// What a CPU does again and again: interrupts, a switch if one is due, a step of its task.
fn turn(kernel: &Kernel, cpu: usize, habits: Habits, is_resting: &Cell<bool>) {
    let rq = &kernel.rqs[cpu];
    kernel.interrupts(cpu, is_resting.get());
    if rq.resched.get() || !rq.stop.borrow().is_empty() {
        rq.is_settled.set(false);
        return kernel.schedule(cpu);
    }
    match rq.current.get() {
        Current::Higher if !is_resting.get() => {
            // Time passes there, too.
            let now_ns = kernel.now_ns.get() + u64::from(kernel.random(20_000));
            kernel.now_ns.set(now_ns);
            rq.is_settled.set(false);
            kernel.switch();
        }
        Current::Task(_) if !is_resting.get() => {
            rq.is_settled.set(false);
            act(kernel, cpu, habits);
            kernel.switch();
        }
        _ => {
            rq.is_settled.set(true);
            kernel.switch();
            rq.is_settled.set(false);
        }
    }
}

/// How often tasks do what: one in so many steps.
#[derive(Clone, Copy)]
struct Habits {
    /// No change of weights or classes if 0.
    change_classes: u32,
    change_masks: u32,
    sleep: u32,
    yield_: u32,
}

impl Habits {
    /// From busy spinners to a crowd of sleepers.
    fn any(kernel: &Kernel, unequal: bool) -> Self {
        let rare = |most| 1 << kernel.random(most);
        let (change_masks, sleep, yield_) = (8 * rare(8), 16 * rare(12), 32 * rare(8));
        if !unequal {
            return Self { change_classes: 0, change_masks, sleep, yield_ };
        }
        // Rarely enough for a task to wait in peace.
        Self {
            change_classes: 1024 * rare(10),
            change_masks: change_masks * rare(14),
            sleep: sleep * rare(8),
            yield_: yield_ * rare(8),
        }
    }
}

/// A task's next step.
fn act(kernel: &Kernel, cpu: usize, habits: Habits) {
    let now_ns = kernel.now_ns.get() + u64::from(kernel.random(20_000));
    kernel.now_ns.set(now_ns);
    if habits.change_classes > 0 && kernel.random(habits.change_classes) == 0 {
        change_class(kernel, cpu);
    } else if kernel.random(habits.change_masks) == 0 {
        let task = kernel.random(kernel.tasks.len() as u32) as Pid;
        kernel.set_mask(task, some_mask(kernel));
    } else if kernel.random(habits.sleep) == 0 {
        kernel.sleep(cpu, u64::from(kernel.random(8_000_000)));
    } else if kernel.random(habits.yield_) == 0 {
        kernel.yield_current(cpu);
    }
}

/// Tasks of any weight, most of them bound to one of few CPUs.
fn begin_unequal(kernel: &Kernel) {
    let crowded = 1 + kernel.random(kernel.rqs.len() as u32);
    for task in &kernel.tasks {
        task.sched.weight.set(some_weight(kernel));
        if kernel.random(4) > 0 {
            let cpu = kernel.random(crowded);
            task.sched.allow(1 << cpu);
            task.sched.cpu.set(cpu);
        }
    }
}

/// A task's weight or class changes, or a higher class takes a CPU.
fn change_class(kernel: &Kernel, cpu: usize) {
    let any_ms = |most| u64::from(1 + kernel.random(most)) * 1_000_000;
    let task = kernel.random(kernel.tasks.len() as u32) as Pid;
    match kernel.random(8) {
        0 => kernel.leave_class(task, cpu, any_ms(9000)),
        1 => kernel.hold(kernel.random(kernel.rqs.len() as u32) as usize, any_ms(100)),
        _ => kernel.set_weight(task, some_weight(kernel)),
    }
}

/// From 1 to 10,000, as many light ones as heavy ones.
fn some_weight(kernel: &Kernel) -> u32 {
    let decade = 10_u32.pow(kernel.random(5));
    (decade * (1 + kernel.random(9))).min(10_000)
}

/// One CPU, or a few neighbours.
fn some_mask(kernel: &Kernel) -> u64 {
    let cpus = kernel.rqs.len() as u32;
    let length = if kernel.random(3) == 0 { 1 + kernel.random(4) } else { 1 };
    let first = kernel.random(cpus);
    (first..first + length).fold(0, |mask, cpu| mask | 1 << (cpu % cpus))
}
