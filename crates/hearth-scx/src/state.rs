//! What the kernel's paths and the scheduler's kfuncs share: run queues with their locks, dispatch
//! queues, tasks, idle CPUs.

use crate::Host;
use crate::queues::DispatchQueues;
use crate::task::{Pid, Place, Task};
use hearth_abi::native::TaskStruct;
use hearth_machine::{CpuSet, Machine};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// What a CPU runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Current {
    /// Nothing.
    Idle,
    /// A task of sched_ext.
    Task(Pid),
    /// The stopper, which moves tasks off a CPU that their mask has lost.
    Stopper,
    /// A higher class.
    Higher,
}

/// What does not change in a run.
#[derive(Clone, Debug)]
pub struct Shape {
    /// For each CPU, the CPUs of its cache domain and those of its memory node.
    pub near: Vec<[CpuSet; 2]>,
    /// Between two ticks, in ps.
    pub tick_ps: u64,
    /// `SCX_OPS_ALWAYS_ENQ_IMMED`, of kernels from 7.1: a task that cannot run at once on the CPU whose
    /// local queue it was inserted into is enqueued anew.
    pub is_immediate: bool,
}

impl Shape {
    /// That of a machine, with a kernel that knows nothing of `SCX_OPS_ALWAYS_ENQ_IMMED`.
    pub fn new(machine: &Machine) -> Self {
        let cpus = machine.cpus();
        let set = |is_near: &dyn Fn(usize) -> bool| -> CpuSet {
            (0..cpus).filter(|other| is_near(*other)).collect()
        };
        let domain_of = |cpu: usize| cpu / machine.domain_cpus();
        let near = |cpu| {
            [
                set(&|other| domain_of(other) == domain_of(cpu)),
                set(&|other| machine.node_of(other) == machine.node_of(cpu)),
            ]
        };
        let tick_ps = machine.kernel.tick_ns * 1000;
        Self { near: (0..cpus).map(near).collect(), tick_ps, is_immediate: false }
    }
}

/// `struct rq`.
pub(crate) struct RunQueue {
    lock: Cell<bool>,
    pub(crate) current: Cell<Current>,
    pub(crate) local: RefCell<VecDeque<Pid>>,
    pub(crate) in_balance: Cell<bool>,
    pub(crate) resched: Cell<bool>,
    /// CPUs to kick when interrupts are on again: if idle, and in any case.
    pub(crate) kick_idle: Cell<CpuSet>,
    pub(crate) kick_preempt: Cell<CpuSet>,
    /// Tasks that the stopper shall move off.
    pub(crate) stop: RefCell<VecDeque<Pid>>,
    /// Up to when the current task has been charged.
    pub(crate) exec_start_ps: Cell<u64>,
    /// A dispatch moved a task.
    pub(crate) dispatched: Cell<bool>,
    /// A higher class wants the CPU, or has it.
    pub(crate) is_held: Cell<bool>,
    /// The scheduler has asked for what waits to run here to be enqueued anew.
    pub(crate) reenqueues: Cell<bool>,
    /// A task waits to run here that may not wait.
    pub(crate) is_late: Cell<bool>,
    /// The task that a callback on this CPU may insert.
    pub(crate) placing: Cell<Option<Pid>>,
}

impl RunQueue {
    fn new() -> Self {
        Self {
            lock: Cell::new(false),
            current: Cell::new(Current::Idle),
            local: RefCell::default(),
            in_balance: Cell::new(false),
            resched: Cell::new(false),
            kick_idle: Cell::default(),
            kick_preempt: Cell::default(),
            stop: RefCell::default(),
            exec_start_ps: Cell::new(0),
            dispatched: Cell::new(false),
            is_held: Cell::new(false),
            reenqueues: Cell::new(false),
            is_late: Cell::new(false),
            placing: Cell::new(None),
        }
    }
}

/// The shared state. Everything is in cells, none of which is borrowed where other CPUs may go on.
pub struct Scx<H> {
    /// What is built on this kernel.
    pub host: H,
    pub(crate) shape: Shape,
    pub(crate) rqs: Vec<RunQueue>,
    tasks: RefCell<Vec<Rc<Task>>>,
    pub(crate) queues: RefCell<DispatchQueues>,
    pub(crate) sequence: Cell<u64>,
    /// The kernel's idle CPUs.
    pub(crate) idle: Cell<CpuSet>,
    pub(crate) online: Cell<CpuSet>,
    /// CPUs that were told to look at their run queue since somebody asked.
    told: Cell<CpuSet>,
    pub(crate) cpu: Cell<usize>,
    error: RefCell<Option<String>>,
}

impl<H: Host> Scx<H> {
    /// A machine at boot, all of its CPUs idle.
    pub fn new(host: H, shape: Shape) -> Self {
        let cpus = shape.near.len();
        let all = CpuSet::first(cpus);
        Self {
            host,
            shape,
            rqs: (0..cpus).map(|_| RunQueue::new()).collect(),
            tasks: RefCell::default(),
            queues: RefCell::default(),
            sequence: Cell::new(0),
            idle: Cell::new(all),
            online: Cell::new(all),
            told: Cell::default(),
            cpu: Cell::new(0),
            error: RefCell::default(),
        }
    }

    /// Number of CPUs, whether they are there or not.
    pub fn cpus(&self) -> usize {
        self.rqs.len()
    }

    /// CPUs that are there.
    pub fn online(&self) -> CpuSet {
        self.online.get()
    }

    /// From now on what happens is done by this CPU.
    pub fn run_on(&self, cpu: usize) {
        self.cpu.set(cpu);
    }

    /// The time that the CPU has which runs, in ps.
    pub(crate) fn now_ps(&self) -> u64 {
        self.host.now_ps(self.cpu.get())
    }

    /// Other CPUs may go on here.
    pub fn gap(&self) {
        let cpu = self.cpu.get();
        self.host.gap();
        self.cpu.set(cpu);
    }

    /// Other CPUs go on.
    pub fn wait(&self) {
        let cpu = self.cpu.get();
        self.host.wait();
        self.cpu.set(cpu);
    }

    // ---- tasks ----

    pub(crate) fn add(&self, task: Task) -> Rc<Task> {
        let task = Rc::new(task);
        self.tasks.borrow_mut().push(Rc::clone(&task));
        task
    }

    /// A task that was added.
    pub fn task(&self, pid: Pid) -> Rc<Task> {
        Rc::clone(&self.tasks.borrow()[pid as usize - 1])
    }

    /// The task of a pointer that the scheduler gives.
    pub(crate) fn known(&self, p: &TaskStruct) -> Rc<Task> {
        self.task(p.pid)
    }

    /// All tasks that were added.
    pub fn tasks(&self) -> Vec<Rc<Task>> {
        self.tasks.borrow().clone()
    }

    /// CPUs that a task may run on. If all of its mask have gone away, any.
    pub(crate) fn cpus_of(&self, task: &Task) -> CpuSet {
        let cpus = task.sched.allowed() & self.online.get();
        if cpus.is_empty() { self.online.get() } else { cpus }
    }

    // ---- errors ----

    pub(crate) fn error(&self, message: String) {
        self.error.borrow_mut().get_or_insert(message);
    }

    /// What the scheduler did that the kernel does not allow, in the kernel's words.
    pub fn failure(&self) -> Option<String> {
        self.error.borrow().clone()
    }

    // ---- locks ----

    pub(crate) fn lock(&self, cpu: usize) {
        self.gap();
        while self.rqs[cpu].lock.replace(true) {
            self.wait();
        }
    }

    pub(crate) fn try_lock(&self, cpu: usize) -> bool {
        !self.rqs[cpu].lock.replace(true)
    }

    pub(crate) fn unlock(&self, cpu: usize) {
        self.rqs[cpu].lock.set(false);
        self.gap();
    }

    pub(crate) fn lock_pi(&self, task: &Task) {
        while task.pi_locked.replace(true) {
            self.wait();
        }
    }

    pub(crate) fn unlock_pi(&self, task: &Task) {
        task.pi_locked.set(false);
        self.gap();
    }

    /// `task_rq_lock`: locks the run queue that the task is on.
    pub(crate) fn lock_rq_of(&self, task: &Task) -> usize {
        loop {
            let cpu = task.cpu();
            self.lock(cpu);
            if task.cpu() == cpu && !task.is_migrating.get() {
                return cpu;
            }
            self.unlock(cpu);
            self.wait();
        }
    }

    // ---- queues ----

    /// `sched_info_arrive`: what it has waited counts, if it waits.
    pub(crate) fn has_waited(&self, task: &Task) {
        if let Some(since_ps) = task.waits_since_ps() {
            task.waited_ps.set(task.waited_ps.get() + self.now_ps().saturating_sub(since_ps));
        }
    }

    /// `set_task_runnable`: it waits since then. The scheduler sees whole ticks.
    pub(crate) fn waits(&self, task: &Task, since_ps: u64) {
        task.waits_since_ps.set(since_ps);
        task.sched.runnable_at.set(since_ps / self.shape.tick_ps);
    }

    pub(crate) fn link_local(&self, task: &Task, cpu: usize) {
        self.rqs[cpu].local.borrow_mut().push_back(task.pid());
        task.place.set(Place::Local(cpu));
        task.is_immediate.set(self.shape.is_immediate);
        if self.shape.is_immediate && (self.rqs[cpu].local.borrow().len() > 1 || !self.is_open(cpu)) {
            self.rqs[cpu].is_late.set(true);
        }
    }

    /// It was made to stop with time left, and runs next.
    pub(crate) fn link_local_first(&self, task: &Task, cpu: usize) {
        self.rqs[cpu].local.borrow_mut().push_front(task.pid());
        task.place.set(Place::Local(cpu));
        task.is_immediate.set(false);
    }

    pub(crate) fn link(&self, task: &Task, id: u64, vtime: Option<u64>) {
        let mut queues = self.queues.borrow_mut();
        let Some(queue) = queues.by_id.get_mut(&id) else {
            return self.error(format!("non-existent DSQ 0x{id:x} for {}", task.label()));
        };
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        if let Err(kind) = queue.insert(task.pid(), vtime, sequence) {
            return self.error(format!("DSQ ID 0x{id:016x} already had {kind}-enqueued tasks"));
        }
        if let Some(vtime) = vtime {
            task.sched.dsq_vtime.set(vtime);
        }
        task.place.set(Place::Queue { id, key: (vtime.unwrap_or_default(), sequence) });
    }

    /// `dispatch_dequeue`: out of whichever queue it waits in, also if a CPU is about to take it.
    pub(crate) fn unlink(&self, task: &Task) {
        match task.place.replace(Place::Nowhere) {
            Place::Local(cpu) => self.rqs[cpu].local.borrow_mut().retain(|&pid| pid != task.pid()),
            Place::Queue { id, key } => {
                if let Some(queue) = self.queues.borrow_mut().by_id.get_mut(&id) {
                    queue.remove(task.pid(), key);
                }
            }
            Place::Nowhere => task.holder.set(None),
        }
    }

    /// How many tasks are in a queue; none if there is no such queue.
    pub fn waiting_in(&self, id: u64) -> Option<usize> {
        self.queues.borrow().by_id.get(&id).map(crate::queues::DispatchQueue::len)
    }

    // ---- CPUs ----

    /// What a CPU runs.
    pub fn current(&self, cpu: usize) -> Current {
        self.rqs[cpu].current.get()
    }

    /// What a CPU runs, if it is a task.
    pub(crate) fn current_task(&self, cpu: usize) -> Option<Rc<Task>> {
        match self.rqs[cpu].current.get() {
            Current::Task(pid) => Some(self.task(pid)),
            _ => None,
        }
    }

    /// `resched_curr`, with the CPU's lock held.
    pub(crate) fn resched(&self, cpu: usize) {
        if !self.rqs[cpu].resched.replace(true) {
            self.told.set(self.told.get().with(cpu));
        }
    }

    pub(crate) fn has_looked(&self, cpu: usize) {
        self.rqs[cpu].resched.set(false);
        self.told.set(self.told.get().without(cpu));
    }

    /// Whether a CPU shall look at its run queue.
    pub fn needs_resched(&self, cpu: usize) -> bool {
        let rq = &self.rqs[cpu];
        rq.resched.get() || rq.is_late.get() || !rq.stop.borrow().is_empty()
    }

    /// CPUs that were told to look at their run queue since the last call.
    pub fn take_told(&self) -> CpuSet {
        self.told.take()
    }

    /// Whether the CPU still has kicks to send.
    pub fn has_kicks(&self, cpu: usize) -> bool {
        !(self.rqs[cpu].kick_idle.get() | self.rqs[cpu].kick_preempt.get()).is_empty()
    }

    /// Whether a higher class wants a CPU, or has it.
    pub fn is_held(&self, cpu: usize) -> bool {
        self.rqs[cpu].is_held.get()
    }

    pub(crate) fn set_idle(&self, cpu: usize, idle: bool) {
        let others = self.idle.get();
        self.idle.set(if idle { others.with(cpu) } else { others.without(cpu) });
    }

    /// `can_skip_idle_kick`: it will look at its queues once more before it goes idle.
    pub(crate) fn is_busy(&self, cpu: usize) -> bool {
        let rq = &self.rqs[cpu];
        rq.current.get() != Current::Idle && !rq.in_balance.get()
    }

    /// `rq_is_open`: what is first in its local queue runs at once.
    pub(crate) fn is_open(&self, cpu: usize) -> bool {
        !self.rqs[cpu].is_held.get() && !self.is_busy(cpu)
    }
}
