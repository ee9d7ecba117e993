//! The kernel: its state, and the scheduler that works on it.

use crate::task::{Pid, Task, Verdict};
use crate::{Current, Host, Scx};
use hearth_abi::native::{ENQ_REENQ, Scheduler, TaskStruct};
use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

/// A kernel that hosts a scheduler.
pub struct Kernel<H> {
    pub(crate) scx: Rc<Scx<H>>,
    scheduler: RefCell<Rc<Scheduler>>,
}

impl<H> Deref for Kernel<H> {
    type Target = Scx<H>;

    fn deref(&self) -> &Scx<H> {
        &self.scx
    }
}

impl<H: Host> Kernel<H> {
    /// `scheduler` was loaded for `scx`; it begins here (`ops.init`). If it cannot, that is the kernel's
    /// [`failure`](Scx::failure).
    pub fn new(scx: &Rc<Scx<H>>, scheduler: Scheduler) -> Self {
        let kernel = Self { scx: Rc::clone(scx), scheduler: RefCell::new(Rc::new(scheduler)) };
        kernel.begins();
        kernel
    }

    pub(crate) fn begins(&self) {
        let code = self.scheduler().init();
        if code != 0 {
            self.error(format!("ops.init() failed ({code})"));
        }
    }

    /// The scheduler that is loaded.
    pub fn scheduler(&self) -> Rc<Scheduler> {
        Rc::clone(&self.scheduler.borrow())
    }

    pub(crate) fn replace(&self, scheduler: Scheduler) {
        self.scheduler.replace(Rc::new(scheduler));
    }

    /// What the scheduler remembers of a task, if it has been told of it.
    pub fn remembered(&self, task: &Task) -> Option<hearth_abi::native::Remembered> {
        self.scheduler().remembered(&task.storage)
    }

    /// A new task, which sleeps; `maker` has forked it, on the CPU where the task is to begin unless the
    /// scheduler says otherwise.
    pub fn add_task(&self, sched: &Rc<TaskStruct>, maker: Option<Pid>) -> Rc<Task> {
        let task = self.add(Task::new(sched));
        let maker = maker.map(|pid| self.task(pid));
        if let Some(maker) = &maker {
            sched.cpu.set(maker.sched.cpu.get());
        }
        self.init_task(&task, true, maker.as_deref());
        self.scheduler().enable(sched);
        task
    }

    /// A task that sleeps has ended. Its number stays its own.
    pub fn end_task(&self, pid: Pid) {
        let task = self.task(pid);
        if !task.is_away.get() {
            self.scheduler().disable(&task.sched);
        }
        task.is_dead.set(true);
        task.storage.clear();
    }

    pub(crate) fn init_task(&self, task: &Task, fork: bool, maker: Option<&Task>) {
        let code = self.scheduler().init_task(&task.sched, fork, maker.map(|maker| &*maker.sched));
        if code != 0 {
            self.error(format!("ops.init_task() failed ({code}) for {}", task.label()));
        }
    }

    /// `update_curr_scx`: adds the time since the last call to the current task's account, and takes it off
    /// its slice.
    pub(crate) fn update_current(&self, cpu: usize) {
        let now_ps = self.host.now_ps(cpu);
        let ran_ns = now_ps.saturating_sub(self.rqs[cpu].exec_start_ps.replace(now_ps)) / 1000;
        if let Some(task) = self.current_task(cpu) {
            task.sched.sum_exec_ns.set(task.sched.sum_exec_ns.get() + ran_ns);
            task.sched.slice.set(task.sched.slice.get().saturating_sub(ran_ns));
        }
    }

    /// `do_enqueue_task`, with the lock of the CPU held: the scheduler says where a runnable task waits. The
    /// kernel links it in after the callback.
    pub(crate) fn enqueue(&self, task: &Task, cpu: usize, flags: u64) {
        task.verdict.set(Verdict::None);
        self.placing(task, || self.scheduler().enqueue(&task.sched, flags));
        self.gap();
        self.carry_out(task, cpu);
    }

    /// Within `callback` the scheduler may insert the task.
    pub(crate) fn placing<T>(&self, task: &Task, callback: impl FnOnce() -> T) -> T {
        let on = self.cpu.get();
        self.rqs[on].placing.set(Some(task.pid()));
        let result = callback();
        self.rqs[on].placing.set(None);
        result
    }

    /// `direct_dispatch`. A task that was inserted nowhere is the scheduler's to keep.
    pub(crate) fn carry_out(&self, task: &Task, cpu: usize) {
        match task.verdict.replace(Verdict::None) {
            Verdict::Local => {
                self.link_local(task, cpu);
                if self.current(cpu) == Current::Idle && !self.rqs[cpu].in_balance.get() {
                    self.resched(cpu);
                }
            }
            Verdict::Queue { id, vtime } => self.link(task, id, vtime),
            Verdict::None => {}
        }
    }

    /// `reenq_local`, with the lock of the CPU held: what waits to run there is enqueued anew, all of it if
    /// the scheduler has asked for that, and what may not wait in any case.
    pub(crate) fn reenqueue_local(&self, cpu: usize) {
        let rq = &self.rqs[cpu];
        let (all, late) = (rq.reenqueues.take(), rq.is_late.take());
        if !all && !late {
            return;
        }
        let first_may_stay = !all && self.is_open(cpu);
        let local: Vec<_> = rq.local.borrow().iter().copied().skip(usize::from(first_may_stay)).collect();
        for task in local.into_iter().map(|pid| self.task(pid)) {
            if all || task.is_immediate.get() {
                self.unlink(&task);
                self.enqueue(&task, cpu, ENQ_REENQ);
            }
        }
    }
}
