//! Time: who runs next in the simulation, and for how long.
//!
//! Each CPU has a clock of its own. The CPU that is furthest behind runs, until the next event, its
//! next tick, or until it is a window ahead of the next one; ties go to the lower number. What must
//! happen in its true order (locks, wake-ups) asks to be first and waits for its turn, so the window
//! only bounds how finely references of different CPUs to shared lines and to the bus interleave.

use crate::disks::Disks;
use crate::error::SimError;
use crate::kernel::{Audit, Entry, Flush, Kernel, State, pid_of};
use crate::measure::RunResult;
use crate::memory::Memory;
use crate::options::Options;
use crate::program::{Application, Body, End, Request, Resume, TaskId};
use hearth_abi::native::PF_KTHREAD;
use hearth_hardware::Hardware;
use hearth_machine::{CpuSet, Machine};
use hearth_policy::pages::PagePolicy;
use hearth_policy::{Controller, Policy};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A disk has served a task's request, or a timer has run out: the CPU that is told, and the task.
    Wake {
        cpu: usize,
        task: TaskId,
    },
    /// An application starts, by its place among those that come later.
    Start(usize),
    Sample,
    Watchdog,
    /// All caches are emptied.
    Flush,
    /// The planner's next step.
    Plan,
}

/// A machine with its kernel, ready to run programs.
pub struct Simulation {
    kernel: Kernel,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    window_ps: u64,
    sample_ps: u64,
    /// Time between two moments at which all caches are emptied, if they are.
    flush_ps: Option<u64>,
    time_limit_ps: u64,
    disks: Disks,
    alive: usize,
    /// Applications that start later, with their number; nothing in the place of one that has.
    coming: Vec<Option<(usize, Application)>>,
    audit: Option<Audit>,
    stop: Option<&'static AtomicBool>,
}

impl Simulation {
    /// A machine at boot, under a policy.
    ///
    /// # Errors
    /// [`SimError::Machine`] and [`SimError::Load`].
    pub fn new(machine: &Machine, policy: &Policy, options: &Options) -> Result<Self, SimError> {
        let mut hardware = Hardware::new(machine, options.seed)?;
        if !options.causes {
            hardware.count_no_causes();
        }
        let hardware = Rc::new(RefCell::new(hardware));
        let mut kernel = Kernel::new(machine, policy, &hardware, options)?;
        if options.record_misses {
            hardware.borrow_mut().log_misses();
        }
        if options.timeline {
            kernel.account.keep_timeline();
        }
        Ok(Self {
            kernel,
            events: BinaryHeap::new(),
            sequence: 0,
            window_ps: options.window_cycles * machine.cycle_ps(),
            sample_ps: options.sample_ns * 1000,
            flush_ps: match options.flush {
                Flush::Each(ns) => Some(ns * 1000),
                _ => None,
            },
            time_limit_ps: options.time_limit_ns.saturating_mul(1000),
            disks: Disks::new(machine),
            alive: 0,
            coming: Vec::new(),
            audit: options.audit.then(|| Audit::new(options, policy, machine)),
            stop: None,
        })
    }

    /// The machine's memory, for building programs.
    pub fn memory(&self) -> Memory {
        self.kernel.memory.clone()
    }

    /// Lets pages move between memory nodes as a page policy says.
    ///
    /// # Errors
    /// [`SimError::PagePolicy`] if it cannot be followed while programs run.
    pub fn migrate_pages(&mut self, machine: &Machine, policy: &PagePolicy) -> Result<(), SimError> {
        let wrong = |reason: String| SimError::PagePolicy { policy: policy.name.clone(), reason };
        if let Some(why) = policy.not_live() {
            return Err(wrong(why.into()));
        }
        let result = self.kernel.migrate_pages(policy, machine.nodes.len(), machine.page_bytes);
        result.map_err(|error| wrong(error.to_string()))
    }

    /// Has a controller plan while programs run, at the times at which it would on Linux.
    ///
    /// # Errors
    /// [`SimError::Load`]
    pub fn plan_with(&mut self, controller: Controller) -> Result<(), SimError> {
        Ok(self.kernel.plan_with(controller)?)
    }

    /// What its plans say of shares acts by the weights of tasks, as on Linux without a scheduler of Hearth's.
    /// Nothing happens if nobody plans.
    pub fn act_by_weights(&mut self) {
        self.kernel.act_by_weights();
    }

    /// Ends a run early when the flag becomes true.
    pub fn stop_when(&mut self, flag: &'static AtomicBool) {
        self.stop = Some(flag);
    }

    /// Adds a program.
    pub fn add(&mut self, application: Application) {
        let start_ns = application.start_ns;
        let (name, is_background) = (&application.name, application.is_background);
        let index = self.kernel.account.application(name, start_ns * 1000, is_background);
        self.kernel.classify(index, application.class);
        if start_ns > 0 {
            self.post(start_ns * 1000, Event::Start(self.coming.len()));
            self.coming.push(Some((index, application)));
            return;
        }
        self.begin(0, index, application);
    }

    /// A program begins: the CPU `by` makes its first tasks. They are not awake yet.
    fn begin(&mut self, by: usize, index: usize, application: Application) -> Vec<TaskId> {
        let mask = self.kernel.mask_of(&application);
        if let Some(asked) = application.asked {
            self.kernel.ask(index, asked);
        }
        let mut begun = Vec::new();
        for (name, body) in application.tasks {
            let task = self.create(by, None, index, mask, &name, body);
            if application.is_kernel {
                self.kernel.tasks[task].scx.sched.process_flags.set(PF_KTHREAD);
            }
            begun.push(task);
        }
        begun
    }

    fn create(
        &mut self,
        cpu: usize,
        maker: Option<TaskId>,
        application: usize,
        mask: CpuSet,
        name: &str,
        body: Body,
    ) -> TaskId {
        self.alive += usize::from(!self.kernel.account.is_background(application));
        self.kernel.create(cpu, maker, application, mask, name, body)
    }

    fn post(&mut self, at_ps: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at_ps, self.sequence, event)));
    }

    /// Runs until every task has ended.
    ///
    /// # Errors
    /// [`SimError::Scheduler`], [`SimError::Deadlock`], [`SimError::TimeLimit`],
    /// [`SimError::Interrupted`].
    pub fn run(mut self) -> Result<RunResult, SimError> {
        self.post(self.sample_ps, Event::Sample);
        let watchdog_ps = self.kernel.timeout_ns() * 500;
        self.post(watchdog_ps, Event::Watchdog);
        if self.kernel.has_planner() {
            self.post(0, Event::Plan);
        }
        if let Some(flush_ps) = self.flush_ps {
            self.post(flush_ps, Event::Flush);
        }
        (0..self.kernel.tasks.len()).for_each(|task| self.kernel.wake(task, 0, End::SystemCall));
        while self.alive > 0 || self.is_some_to_come() {
            self.step(watchdog_ps)?;
        }
        Ok(self.kernel.finish())
    }

    fn is_some_to_come(&self) -> bool {
        let is_awaited =
            |application: &Application| !application.is_background && !application.tasks.is_empty();
        self.coming.iter().flatten().any(|(_, application)| is_awaited(application))
    }

    /// The CPU furthest behind, its time, and the time of the next one.
    fn furthest_behind(&self) -> Option<(usize, u64, u64)> {
        let mut first = None;
        let mut next_ps = u64::MAX;
        for (cpu, now_ps) in self.kernel.active() {
            match first {
                Some((_, first_ps)) if now_ps >= first_ps => next_ps = next_ps.min(now_ps),
                Some((_, first_ps)) => {
                    next_ps = first_ps;
                    first = Some((cpu, now_ps));
                }
                None => first = Some((cpu, now_ps)),
            }
        }
        first.map(|(cpu, now_ps)| (cpu, now_ps, next_ps))
    }

    fn step(&mut self, watchdog_ps: u64) -> Result<(), SimError> {
        let event_ps = self.events.peek().map_or(u64::MAX, |Reverse((at_ps, _, _))| *at_ps);
        match self.furthest_behind() {
            Some((cpu, now_ps, next_ps)) if now_ps < event_ps => self.advance(cpu, next_ps.min(event_ps)),
            behind => {
                let idle = behind.is_none();
                self.deliver(idle, watchdog_ps)?;
            }
        }
        if self.audit.is_some() {
            self.look_for_defects()?;
        }
        match self.kernel.failure() {
            Some(reason) => Err(SimError::Scheduler { reason, at_ms: self.latest_ps() / 1_000_000_000 }),
            None => Ok(()),
        }
    }

    fn look_for_defects(&mut self) -> Result<(), SimError> {
        let now_ps = self.latest_ps();
        let found = self.audit.as_mut().and_then(|audit| audit.look(&self.kernel, now_ps));
        found.map_or(Ok(()), |reason| Err(SimError::Audit { reason, at_ns: now_ps / 1000 }))
    }

    fn latest_ps(&self) -> u64 {
        (0..self.kernel.cpus.len()).map(|cpu| self.kernel.port(cpu).now_ps()).max().unwrap_or_default()
    }

    /// One CPU goes on until something else may matter to it.
    fn advance(&mut self, cpu: usize, horizon_ps: u64) {
        let kernel = &mut self.kernel;
        let now_ps = kernel.port(cpu).now_ps();
        if let Some(why) = kernel.cpus[cpu].resched {
            let stays = kernel.cpus[cpu].current.is_some();
            return kernel.schedule(cpu, why, stays);
        }
        let tick_ps = kernel.cpus[cpu].next_tick_ps;
        if now_ps >= tick_ps {
            return kernel.tick(cpu);
        }
        let port = Rc::clone(kernel.port(cpu));
        port.set_horizon_ps(horizon_ps);
        port.set_limit_ps(tick_ps.min(horizon_ps.saturating_add(self.window_ps)));
        let Some(current) = kernel.cpus[cpu].current else { return };
        let task = &mut kernel.tasks[current];
        if let Some(bytes) = task.pending_io.take() {
            return self.start_io(cpu, current, bytes);
        }
        if task.computes_on(&port) {
            return;
        }
        let resume = Resume { port, value: task.answer };
        match task.resume(resume) {
            Some(request) => self.serve(cpu, current, request),
            None => {
                let application = self.kernel.tasks[current].application;
                self.alive -= usize::from(!self.kernel.account.is_background(application));
                self.kernel.end(current, cpu);
            }
        }
    }

    /// What the running program asked for.
    fn serve(&mut self, cpu: usize, task: TaskId, request: Request) {
        match request {
            Request::Due | Request::Synchronize => return,
            Request::Compute { rest_ps } => {
                self.kernel.tasks[task].rest_ps = rest_ps;
                return;
            }
            Request::PageFault(address) => return self.kernel.page_fault(cpu, address),
            Request::Missed(missed) => return self.kernel.missed(cpu, missed),
            Request::Parallel { begins } => return self.kernel.mark(task, cpu, begins),
            Request::Declare { fragment } => {
                let answer = usize::from(self.kernel.declare(task, cpu, fragment));
                self.kernel.tasks[task].answer = answer;
                return;
            }
            Request::Found => return self.kernel.found(task, cpu),
            _ => self.kernel.charge(cpu, Entry::SystemCall),
        }
        let now_ps = self.kernel.port(cpu).now_ps();
        match request {
            Request::Yield(why) => self.kernel.yield_current(cpu, why),
            Request::Wake { task: other, is_sync: false } => self.kernel.wake(other, cpu, End::SystemCall),
            Request::Wake { task: other, is_sync: true } => {
                self.kernel.wake_sync(other, cpu, End::SystemCall)
            }
            Request::Block => self.block(cpu, task),
            Request::SetWeight { task, weight } => self.kernel.set_weight(task, weight, cpu),
            Request::SetMask { task: other, cpus } => {
                self.kernel.tasks[task].answer = usize::from(self.kernel.set_mask(other, cpus, cpu));
            }
            Request::SetClass { task, class } => self.kernel.set_class(task, class, cpu),
            Request::SetOnline { cpu: other, is_online } => self.kernel.set_online(other, is_online, cpu),
            Request::Sleep { ns } => {
                self.post(now_ps + ns * 1000, Event::Wake { cpu, task });
                self.block(cpu, task);
            }
            Request::Io { bytes } if self.disks.can_start(cpu) => self.start_io(cpu, task, bytes),
            Request::Io { bytes } => {
                self.kernel.tasks[task].pending_io = Some(bytes);
                self.kernel.migrate_current(cpu, self.disks.starters);
            }
            Request::Fork { name, body } => {
                self.kernel.charge(cpu, Entry::Fork);
                let (application, mask) = (self.kernel.tasks[task].application, self.kernel.tasks[task].mask);
                let child = self.create(cpu, Some(task), application, mask, &name, body);
                self.kernel.tasks[task].answer = child;
                self.kernel.wake(child, cpu, End::SystemCall);
            }
            _ => {}
        }
    }

    /// The task on a CPU that can starts a request to the disk, and blocks until it is served.
    fn start_io(&mut self, cpu: usize, task: TaskId, bytes: u64) {
        self.kernel.scx.allow(pid_of(task), self.kernel.tasks[task].mask);
        let done_ps = self.disks.serve(self.kernel.port(cpu).now_ps(), bytes);
        self.post(done_ps, Event::Wake { cpu: self.disks.cpu, task });
        self.block(cpu, task);
    }

    fn block(&mut self, cpu: usize, task: TaskId) {
        if !std::mem::take(&mut self.kernel.tasks[task].wake_pending) {
            self.kernel.schedule(cpu, End::Block, false);
        }
    }

    fn deliver(&mut self, idle: bool, watchdog_ps: u64) -> Result<(), SimError> {
        let Some(Reverse((at_ps, _, event))) = self.events.pop() else { return Ok(()) };
        match event {
            Event::Wake { cpu, task } => {
                let cpu = self.kernel.online_or_other(cpu);
                self.kernel.interrupt(cpu, at_ps);
                self.kernel.wake(task, cpu, End::Interrupt);
            }
            Event::Start(coming) => {
                let cpu = self.kernel.online_or_other(self.disks.cpu);
                self.kernel.interrupt(cpu, at_ps);
                if let Some((index, application)) = self.coming[coming].take() {
                    let tasks = self.begin(cpu, index, application);
                    tasks.into_iter().for_each(|task| self.kernel.wake(task, cpu, End::SystemCall));
                }
            }
            Event::Sample => {
                self.kernel.sample(at_ps);
                self.post(at_ps + self.sample_ps, Event::Sample);
                self.look_around(at_ps, idle)?;
            }
            Event::Plan => {
                self.kernel.plan(at_ps / 1000);
                self.post(at_ps + Controller::STEP.as_nanos() as u64 * 1000, Event::Plan);
            }
            Event::Flush => {
                self.kernel.flush();
                self.flush_ps.into_iter().for_each(|flush_ps| self.post(at_ps + flush_ps, Event::Flush));
            }
            Event::Watchdog => {
                self.post(at_ps + watchdog_ps, Event::Watchdog);
                if let Some(reason) = self.kernel.stalled(at_ps) {
                    return Err(SimError::Scheduler { reason, at_ms: at_ps / 1_000_000_000 });
                }
            }
        }
        Ok(())
    }

    /// Whether it makes sense to go on.
    fn look_around(&self, now_ps: u64, idle: bool) -> Result<(), SimError> {
        if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(SimError::Interrupted);
        }
        if now_ps > self.time_limit_ps {
            return Err(SimError::TimeLimit(self.time_limit_ps / 1_000_000_000_000));
        }
        let leads_on = |event: &Event| matches!(event, Event::Wake { .. } | Event::Start(_));
        let pending = self.events.iter().any(|Reverse((_, _, event))| leads_on(event));
        let in_state = |state| (0..self.kernel.tasks.len()).filter(move |&id| self.kernel.state(id) == state);
        if idle && !pending && in_state(State::Waiting).next().is_none() {
            let name = |id: TaskId| self.kernel.tasks[id].scx.sched.name();
            let names: Vec<String> = in_state(State::Blocked).take(8).map(name).collect();
            let at_ms = now_ps / 1_000_000_000;
            return Err(SimError::Deadlock { tasks: self.alive, names: names.join(", "), at_ms });
        }
        Ok(())
    }
}
