//! What the kernel's functions and the scheduler's kfuncs share: run queues with their locks,
//! dispatch queues, tasks, idle CPUs, and the moment at which another CPU may go on.

use crate::switch;
use hearth_native::{TaskStorage, TaskStruct};
use hearth_seam::queue_of;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// A task, by its number.
pub(crate) type Pid = i32;

/// Tasks by vtime, and first come among equals.
pub(crate) type DispatchQueue = BTreeSet<(u64, u64, Pid)>;

/// What a CPU runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Current {
    Idle,
    Task(Pid),
    /// The stopper, which moves tasks off a CPU that their mask has lost.
    Stopper,
    /// A task of a higher class.
    Higher,
}

/// Where a runnable task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Nowhere,
    Local(usize),
    Queue { id: u64, key: (u64, u64) },
}

/// Where `select_cpu` or `enqueue` wants the task: in a queue by its vtime, or on the CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    None,
    Local,
    Queue { id: u64, vtime: u64 },
}

/// `struct task_struct`, as far as the kernel needs it.
pub(crate) struct Task {
    pub(crate) sched: Rc<TaskStruct>,
    pub(crate) pi_locked: Cell<bool>,
    /// It has not asked to sleep, or was woken.
    pub(crate) is_runnable: Cell<bool>,
    pub(crate) on_rq: Cell<bool>,
    /// Between two run queues.
    pub(crate) is_migrating: Cell<bool>,
    pub(crate) place: Cell<Place>,
    pub(crate) verdict: Cell<Verdict>,
    /// `scx.holding_cpu`: the CPU that is about to take it.
    pub(crate) holder: Cell<Option<usize>>,
    /// Since when it has waited, in ns.
    pub(crate) waits_since: Cell<u64>,
    /// It is in another scheduling class.
    pub(crate) is_away: Cell<bool>,
    pub(crate) storage: TaskStorage,
}

/// `struct rq`.
pub(crate) struct RunQueue {
    lock: Cell<bool>,
    pub(crate) current: Cell<Current>,
    pub(crate) local: RefCell<VecDeque<Pid>>,
    pub(crate) in_balance: Cell<bool>,
    pub(crate) resched: Cell<bool>,
    /// CPUs to kick when interrupts are on again: if idle, and in any case.
    pub(crate) kick_idle: Cell<u64>,
    pub(crate) kick_preempt: Cell<u64>,
    /// Tasks that the stopper shall move off.
    pub(crate) stop: RefCell<VecDeque<Pid>>,
    pub(crate) next_tick: Cell<u64>,
    pub(crate) exec_start: Cell<u64>,
    /// Nothing to do: idle, or at a task's next step while nothing new may begin.
    pub(crate) is_settled: Cell<bool>,
    /// A dispatch moved a task here.
    pub(crate) dispatched: Cell<bool>,
    /// Until when a higher class holds the CPU.
    pub(crate) held_until: Cell<u64>,
    /// The scheduler has asked for what waits to run here to be enqueued anew.
    pub(crate) reenqueues: Cell<bool>,
}

/// The shared state. Everything is in cells, none of which is borrowed while CPUs switch.
pub(crate) struct State {
    pub(crate) rqs: Vec<RunQueue>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) queues: RefCell<BTreeMap<u64, DispatchQueue>>,
    pub(crate) sequence: Cell<u64>,
    pub(crate) walks: RefCell<Vec<Option<VecDeque<Pid>>>>,
    /// The kernel's idle CPUs, as bits.
    pub(crate) idle: Cell<u64>,
    /// For each CPU: those of its cache domain and of its node, as bits.
    pub(crate) near: Vec<[u64; 2]>,
    /// When to wake whom, and on which CPU the timer is.
    pub(crate) timers: RefCell<BTreeSet<(u64, usize, Pid)>>,
    pub(crate) now_ns: Cell<u64>,
    pub(crate) cpu: Cell<usize>,
    pub(crate) error: RefCell<Option<String>>,
    pub(crate) tick_ns: u64,
    /// One in so many accesses lets others go on.
    pub(crate) switch_one_in: Cell<u32>,
    random: RefCell<Pcg32>,
}

impl State {
    pub(crate) fn new(near: Vec<[u64; 2]>, tasks: usize, tick_ns: u64, seed: u64) -> Self {
        let cpus = near.len();
        let all = (1u64 << cpus) - 1;
        let rq = |cpu| RunQueue {
            lock: Cell::new(false),
            current: Cell::new(Current::Idle),
            local: RefCell::default(),
            in_balance: Cell::new(false),
            resched: Cell::new(false),
            kick_idle: Cell::new(0),
            kick_preempt: Cell::new(0),
            stop: RefCell::default(),
            next_tick: Cell::new(tick_ns + tick_ns * cpu as u64 / cpus as u64),
            exec_start: Cell::new(0),
            is_settled: Cell::new(false),
            dispatched: Cell::new(false),
            held_until: Cell::new(0),
            reenqueues: Cell::new(false),
        };
        let task = |pid| Task {
            sched: Rc::new(TaskStruct::new(pid, pid as usize % cpus, all, "racer")),
            pi_locked: Cell::new(false),
            is_runnable: Cell::new(false),
            on_rq: Cell::new(false),
            is_migrating: Cell::new(false),
            place: Cell::new(Place::Nowhere),
            verdict: Cell::new(Verdict::None),
            holder: Cell::new(None),
            waits_since: Cell::new(0),
            is_away: Cell::new(false),
            storage: TaskStorage::default(),
        };
        Self {
            rqs: (0..cpus).map(rq).collect(),
            tasks: (0..tasks as Pid).map(task).collect(),
            queues: RefCell::default(),
            sequence: Cell::new(0),
            walks: RefCell::default(),
            idle: Cell::new(all),
            near,
            timers: RefCell::default(),
            now_ns: Cell::new(0),
            cpu: Cell::new(0),
            error: RefCell::default(),
            tick_ns,
            switch_one_in: Cell::new(64),
            random: RefCell::new(Pcg32::seed_from_u64(seed)),
        }
    }

    /// A number below `end`.
    pub(crate) fn random(&self, end: u32) -> u32 {
        self.random.borrow_mut().next_u32() % end
    }

    /// Another CPU may go on here.
    pub(crate) fn preempt(&self) {
        if self.random(self.switch_one_in.get()) == 0 {
            self.switch();
        }
    }

    /// Others go on.
    pub(crate) fn switch(&self) {
        let cpu = self.cpu.get();
        switch::suspend();
        self.cpu.set(cpu);
    }

    pub(crate) fn task(&self, pid: Pid) -> &Task {
        &self.tasks[pid as usize]
    }

    pub(crate) fn fail(&self, message: String) {
        self.error.borrow_mut().get_or_insert(message);
    }

    // ---- locks ----

    pub(crate) fn lock(&self, cpu: usize) {
        self.preempt();
        while self.rqs[cpu].lock.replace(true) {
            self.switch();
        }
    }

    pub(crate) fn try_lock(&self, cpu: usize) -> bool {
        !self.rqs[cpu].lock.replace(true)
    }

    pub(crate) fn unlock(&self, cpu: usize) {
        self.rqs[cpu].lock.set(false);
        self.preempt();
    }

    pub(crate) fn lock_pi(&self, task: &Task) {
        while task.pi_locked.replace(true) {
            self.switch();
        }
    }

    pub(crate) fn unlock_pi(&self, task: &Task) {
        task.pi_locked.set(false);
        self.preempt();
    }

    /// `task_rq_lock`: locks the run queue that the task is on.
    pub(crate) fn lock_rq_of(&self, task: &Task) -> usize {
        loop {
            let cpu = task.sched.cpu.get() as usize;
            self.lock(cpu);
            if task.sched.cpu.get() as usize == cpu && !task.is_migrating.get() {
                return cpu;
            }
            self.unlock(cpu);
            self.switch();
        }
    }

    // ---- queues ----

    /// `set_task_runnable`.
    pub(crate) fn waits(&self, task: &Task, since_ns: u64) {
        task.waits_since.set(since_ns);
        task.sched.runnable_at.set(since_ns / self.tick_ns);
    }

    pub(crate) fn link_local(&self, task: &Task, cpu: usize, first: bool) {
        let mut local = self.rqs[cpu].local.borrow_mut();
        if first {
            local.push_front(task.sched.pid);
        } else {
            local.push_back(task.sched.pid);
        }
        task.place.set(Place::Local(cpu));
    }

    pub(crate) fn link(&self, task: &Task, id: u64, vtime: u64) {
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        task.sched.dsq_vtime.set(vtime);
        match self.queues.borrow_mut().get_mut(&id) {
            Some(queue) => {
                queue.insert((vtime, sequence, task.sched.pid));
                task.place.set(Place::Queue { id, key: (vtime, sequence) });
            }
            None => self.fail(format!("non-existent DSQ 0x{id:x} for {}", task.sched.pid)),
        }
    }

    /// `dispatch_dequeue`: out of whichever queue it waits in, also if a CPU is about to take it.
    pub(crate) fn unlink(&self, task: &Task) {
        match task.place.replace(Place::Nowhere) {
            Place::Local(cpu) => {
                self.rqs[cpu].local.borrow_mut().retain(|&pid| pid != task.sched.pid);
            }
            Place::Queue { id, key } => {
                if let Some(queue) = self.queues.borrow_mut().get_mut(&id) {
                    queue.remove(&(key.0, key.1, task.sched.pid));
                }
            }
            Place::Nowhere => task.holder.set(None),
        }
    }

    /// Whether tasks wait in one of a CPU's two queues.
    pub(crate) fn has_waiting(&self, cpu: usize, bound: bool) -> bool {
        self.queues.borrow().get(&queue_of(cpu, bound)).is_some_and(|queue| !queue.is_empty())
    }

    // ---- CPUs ----

    /// What a CPU runs, if it is a task.
    pub(crate) fn current_task(&self, cpu: usize) -> Option<&Task> {
        match self.rqs[cpu].current.get() {
            Current::Task(pid) => Some(self.task(pid)),
            _ => None,
        }
    }

    /// `resched_curr`, with the CPU's lock held.
    pub(crate) fn resched(&self, cpu: usize) {
        self.rqs[cpu].resched.set(true);
    }

    /// Whether no CPU has anything to do but what tasks may begin.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.rqs.iter().all(|rq| {
            let is_held = rq.current.get() == Current::Higher;
            let is_pending = rq.resched.get()
                || is_held && rq.held_until.get() <= self.now_ns.get()
                || rq.kick_idle.get() | rq.kick_preempt.get() != 0
                || rq.next_tick.get() <= self.now_ns.get()
                || !rq.stop.borrow().is_empty();
            rq.is_settled.get() && !is_pending
        })
    }

    /// `can_skip_idle_kick`: it will look at its queues once more before it goes idle.
    pub(crate) fn is_busy(&self, cpu: usize) -> bool {
        let rq = &self.rqs[cpu];
        rq.current.get() != Current::Idle && !rq.in_balance.get()
    }
}
