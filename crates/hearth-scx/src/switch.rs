//! `__schedule` and its sched_ext part: a CPU inspects its run queue and goes on with what comes next.

use crate::task::Task;
use crate::{Current, Host, Kernel};
use hearth_abi::native::ENQ_REENQ;

/// `SCX_SLICE_DFL`.
const SLICE_DEFAULT_NS: u64 = 20_000_000;

impl<H: Host> Kernel<H> {
    /// The CPU inspects its run queue; what it runs then. `between` happens when a task that sleeps has
    /// been stopped, and before the next is looked for.
    pub fn schedule(&self, cpu: usize, between: impl FnOnce()) -> Current {
        let rq = &self.rqs[cpu];
        self.lock(cpu);
        self.update_current(cpu);
        let previous = rq.current.get();
        self.deactivate(cpu);
        between();
        let stops = !rq.stop.borrow().is_empty() && previous != Current::Stopper;
        let next = match (stops, rq.is_held.get()) {
            (true, _) => Current::Stopper,
            (_, true) => Current::Higher,
            _ => self.pick(cpu, previous),
        };
        if next != previous {
            self.put_previous(cpu, previous, next);
            rq.current.set(next);
            self.set_next(cpu, next);
        }
        self.has_looked(cpu);
        if let Current::Task(pid) = previous
            && next != previous
        {
            self.pin(&self.task(pid), cpu);
        }
        if next == Current::Higher && next != previous {
            self.scheduler().cpu_release(cpu);
            rq.is_late.set(self.shape.is_immediate);
        }
        self.reenqueue_local(cpu);
        self.unlock(cpu);
        if let Current::Task(pid) = previous
            && next != previous
        {
            self.task(pid).sched.on_cpu.set(0);
        }
        if next == Current::Stopper {
            self.run_stopper(cpu);
        }
        next
    }

    /// The task that runs is not charged for the time up to now.
    pub fn charge_from_now(&self, cpu: usize) {
        self.rqs[cpu].exec_start_ps.set(self.host.now_ps(cpu));
    }

    /// `deactivate_task`, of a task that has asked to sleep.
    fn deactivate(&self, cpu: usize) {
        let Some(task) = self.current_task(cpu).filter(|task| !task.is_runnable.get()) else { return };
        self.scheduler().stopping(&task.sched, false);
        task.set_queued(false);
        task.on_rq.set(false);
    }

    /// `pick_task_scx`, and the idle task's after it.
    fn pick(&self, cpu: usize, previous: Current) -> Current {
        let rq = &self.rqs[cpu];
        rq.in_balance.set(true);
        let keeps = self.balance(cpu, previous);
        rq.in_balance.set(false);
        let first = rq.local.borrow().front().copied();
        if keeps && first.is_some() {
            rq.is_late.set(self.shape.is_immediate);
        }
        let next = if keeps { previous } else { first.map_or(Current::Idle, Current::Task) };
        match next {
            Current::Task(pid) => {
                let slice = &self.task(pid).sched.slice;
                if slice.get() == 0 {
                    slice.set(SLICE_DEFAULT_NS);
                }
            }
            // From idle to idle: the idle mask alone is told.
            _ if previous == Current::Idle => self.set_idle(cpu, true),
            _ => {}
        }
        next
    }

    /// `balance_one`: whether the task that ran goes on.
    fn balance(&self, cpu: usize, previous: Current) -> bool {
        let rq = &self.rqs[cpu];
        let task = match previous {
            Current::Task(pid) => Some(self.task(pid)).filter(|task| task.is_queued()),
            _ => None,
        };
        let has_slice = || task.as_ref().is_some_and(|task| task.sched.slice.get() > 0);
        if has_slice() {
            return true;
        }
        while rq.local.borrow().is_empty() {
            rq.dispatched.set(false);
            self.scheduler().dispatch(cpu, task.as_ref().map(|task| &*task.sched));
            if has_slice() {
                return true;
            }
            if rq.local.borrow().is_empty() && !rq.dispatched.get() {
                // With `SCX_OPS_ENQ_LAST` a task that was left without a slice is enqueued, not kept.
                return false;
            }
        }
        false
    }

    fn put_previous(&self, cpu: usize, previous: Current, next: Current) {
        match previous {
            Current::Idle => {
                self.set_idle(cpu, false);
                self.scheduler().update_idle(cpu, false);
            }
            Current::Task(pid) => {
                let task = self.task(pid);
                if task.is_queued() {
                    self.put_task(&task, cpu, next);
                }
            }
            Current::Stopper | Current::Higher => {}
        }
    }

    /// `put_prev_task_scx`, of a task that could go on.
    fn put_task(&self, task: &Task, cpu: usize, next: Current) {
        self.scheduler().stopping(&task.sched, true);
        self.waits(task, self.now_ps());
        let has_slice = task.sched.slice.get() > 0;
        if has_slice && !(self.shape.is_immediate && next == Current::Higher) {
            self.link_local_first(task, cpu);
        } else {
            self.enqueue(task, cpu, if has_slice { ENQ_REENQ } else { 0 });
        }
    }

    fn set_next(&self, cpu: usize, next: Current) {
        match next {
            Current::Idle => {
                self.set_idle(cpu, true);
                self.scheduler().update_idle(cpu, true);
            }
            Current::Task(pid) => {
                let task = self.task(pid);
                self.unlink(&task);
                self.has_waited(&task);
                task.sched.on_cpu.set(1);
                self.charge_from_now(cpu);
                self.scheduler().running(&task.sched);
            }
            Current::Stopper | Current::Higher => {}
        }
    }

    /// The current task asks to sleep, and the CPU is about to look for another.
    pub fn block(&self, cpu: usize) {
        if let Some(task) = self.current_task(cpu) {
            task.is_runnable.set(false);
            self.resched(cpu);
        }
    }

    /// `sched_yield`.
    pub fn yield_current(&self, cpu: usize) {
        self.lock(cpu);
        if let Some(task) = self.current_task(cpu) {
            self.scheduler().yield_task(&task.sched);
        }
        self.resched(cpu);
        self.unlock(cpu);
    }
}
