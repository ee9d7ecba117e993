//! The kernel's side of sched_ext: switches, wake-ups, masks, interrupts, each with the locks under
//! which the kernel calls the scheduler and the gaps between them (kernel/sched/core.c and ext.c).

use crate::state::{Current, Pid, State, Task, Verdict};
use hearth_native::{ENQ_REENQ, ENQ_WAKEUP, Scheduler, TASK_QUEUED};
use std::ops::Deref;
use std::rc::Rc;

/// `SCX_SLICE_DFL`.
const SLICE_DEFAULT_NS: u64 = 20_000_000;

/// The shared state, and the scheduler that works on it.
pub(crate) struct Kernel {
    pub(crate) state: Rc<State>,
    pub(crate) scheduler: Scheduler,
}

impl Deref for Kernel {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl Kernel {
    fn set_queued(&self, task: &Task, queued: bool) {
        let flags = task.sched.flags.get();
        task.sched.flags.set(if queued { flags | TASK_QUEUED } else { flags & !TASK_QUEUED });
    }

    fn is_queued(task: &Task) -> bool {
        task.sched.flags.get() & TASK_QUEUED != 0
    }

    /// `update_curr_scx`.
    fn update_current(&self, cpu: usize) {
        let rq = &self.rqs[cpu];
        let now = self.now_ns.get();
        let ran = now - rq.exec_start.replace(now);
        if let Some(task) = self.current_task(cpu) {
            task.sched.sum_exec_ns.set(task.sched.sum_exec_ns.get() + ran);
            task.sched.slice.set(task.sched.slice.get().saturating_sub(ran));
        }
    }

    /// `local_dsq_post_enq`.
    fn link_local_and_resched(&self, task: &Task, cpu: usize) {
        self.link_local(task, cpu, false);
        if self.rqs[cpu].current.get() == Current::Idle && !self.rqs[cpu].in_balance.get() {
            self.resched(cpu);
        }
    }

    /// `do_enqueue_task`, with the lock of the CPU held. The kernel links the task in after the
    /// callback.
    fn enqueue(&self, task: &Task, cpu: usize, flags: u64) {
        task.verdict.set(Verdict::None);
        self.scheduler.enqueue(&task.sched, flags);
        self.preempt();
        self.carry_out(task, cpu);
    }

    fn carry_out(&self, task: &Task, cpu: usize) {
        match task.verdict.replace(Verdict::None) {
            Verdict::Local => self.link_local_and_resched(task, cpu),
            Verdict::Queue { id, vtime } => self.link(task, id, vtime),
            Verdict::None => self.fail(format!("task {} was inserted nowhere", task.sched.pid)),
        }
    }

    // ---- __schedule ----

    pub(crate) fn schedule(&self, cpu: usize) {
        let rq = &self.rqs[cpu];
        self.lock(cpu);
        self.update_current(cpu);
        let previous = rq.current.get();
        if let Some(task) = self.current_task(cpu).filter(|task| !task.is_runnable.get()) {
            self.scheduler.stopping(&task.sched, false);
            self.set_queued(task, false);
            task.on_rq.set(false);
        }
        let stops = !rq.stop.borrow().is_empty() && previous != Current::Stopper;
        let is_held = rq.held_until.get() > self.now_ns.get();
        let next = match (stops, is_held) {
            (true, _) => Current::Stopper,
            (_, true) => Current::Higher,
            _ => self.pick(cpu, previous),
        };
        if next != previous {
            self.put_previous(cpu, previous);
            rq.current.set(next);
            self.set_next(cpu, next);
        }
        rq.resched.set(false);
        if next == Current::Higher && next != previous {
            self.release(cpu);
        }
        self.unlock(cpu);
        if let Current::Task(pid) = previous
            && next != previous
        {
            self.task(pid).sched.on_cpu.set(0);
        }
        if next == Current::Stopper {
            self.run_stopper(cpu);
        }
    }

    /// `pick_task_scx`, and the idle task's after it.
    fn pick(&self, cpu: usize, previous: Current) -> Current {
        let rq = &self.rqs[cpu];
        rq.in_balance.set(true);
        let keeps = self.balance(cpu, previous);
        rq.in_balance.set(false);
        let next = if keeps {
            previous
        } else {
            rq.local.borrow().front().map_or(Current::Idle, |&pid| Current::Task(pid))
        };
        match next {
            Current::Task(pid) => {
                let slice = &self.task(pid).sched.slice;
                if slice.get() == 0 {
                    slice.set(SLICE_DEFAULT_NS);
                }
            }
            // From idle to idle: the idle mask alone is told.
            _ if previous == Current::Idle => self.idle.set(self.idle.get() | 1 << cpu),
            _ => {}
        }
        next
    }

    /// `balance_one`: whether the task that ran goes on.
    fn balance(&self, cpu: usize, previous: Current) -> bool {
        let rq = &self.rqs[cpu];
        let task = match previous {
            Current::Task(pid) => Some(self.task(pid)).filter(|task| Self::is_queued(task)),
            _ => None,
        };
        let has_slice = || task.is_some_and(|task| task.sched.slice.get() > 0);
        if has_slice() {
            return true;
        }
        while rq.local.borrow().is_empty() {
            rq.dispatched.set(false);
            self.scheduler.dispatch(cpu, task.map(|task| &*task.sched));
            if has_slice() {
                return true;
            }
            if rq.local.borrow().is_empty() && !rq.dispatched.get() {
                return task.is_some();
            }
        }
        false
    }

    fn put_previous(&self, cpu: usize, previous: Current) {
        match previous {
            Current::Idle => {
                self.idle.set(self.idle.get() & !(1 << cpu));
                self.scheduler.update_idle(cpu, false);
            }
            Current::Task(pid) if Self::is_queued(self.task(pid)) => {
                let task = self.task(pid);
                self.scheduler.stopping(&task.sched, true);
                self.waits(task, self.now_ns.get());
                if task.sched.slice.get() > 0 {
                    self.link_local(task, cpu, true);
                } else {
                    self.enqueue(task, cpu, 0);
                }
            }
            _ => {}
        }
    }

    fn set_next(&self, cpu: usize, next: Current) {
        match next {
            Current::Idle => {
                self.idle.set(self.idle.get() | 1 << cpu);
                self.scheduler.update_idle(cpu, true);
            }
            Current::Task(pid) => {
                let task = self.task(pid);
                self.unlink(task);
                task.sched.on_cpu.set(1);
                self.rqs[cpu].exec_start.set(self.now_ns.get());
                self.scheduler.running(&task.sched);
            }
            Current::Stopper | Current::Higher => {}
        }
    }

    /// `switch_class`: a higher class takes the CPU.
    fn release(&self, cpu: usize) {
        self.scheduler.cpu_release(cpu);
        if !self.rqs[cpu].reenqueues.take() {
            return;
        }
        let local: Vec<Pid> = self.rqs[cpu].local.borrow().iter().copied().collect();
        for task in local.into_iter().map(|pid| self.task(pid)) {
            self.unlink(task);
            self.enqueue(task, cpu, ENQ_REENQ);
        }
    }

    // ---- wake-ups and sleep ----

    /// `try_to_wake_up`.
    pub(crate) fn wake(&self, pid: Pid) {
        let task = self.task(pid);
        self.lock_pi(task);
        if !task.is_runnable.get() {
            let cpu = self.lock_rq_of(task);
            let was_on_rq = task.on_rq.get();
            task.is_runnable.set(was_on_rq);
            self.unlock(cpu);
            if !was_on_rq {
                self.activate(task);
            }
        }
        self.unlock_pi(task);
    }

    fn activate(&self, task: &Task) {
        while task.sched.on_cpu.get() != 0 {
            self.switch();
        }
        task.is_runnable.set(true);
        let allowed = task.sched.allowed();
        task.verdict.set(Verdict::None);
        let mut cpu = allowed.trailing_zeros() as usize;
        if allowed.count_ones() > 1 {
            cpu = self.scheduler.select_cpu(&task.sched, task.sched.cpu.get() as usize, ENQ_WAKEUP) as usize;
        }
        if allowed >> cpu & 1 == 0 {
            cpu = allowed.trailing_zeros() as usize;
        }
        task.sched.cpu.set(cpu as u32);
        self.lock(cpu);
        self.waits(task, self.now_ns.get());
        self.begin(task, cpu, ENQ_WAKEUP);
        self.unlock(cpu);
    }

    /// `activate_task` and `wakeup_preempt`.
    fn begin(&self, task: &Task, cpu: usize, flags: u64) {
        task.on_rq.set(true);
        self.set_queued(task, true);
        match task.verdict.get() {
            Verdict::None => self.enqueue(task, cpu, flags),
            _ => self.carry_out(task, cpu),
        }
        if self.rqs[cpu].current.get() == Current::Idle {
            self.resched(cpu);
        }
    }

    // ---- masks ----

    /// `sched_setaffinity`.
    pub(crate) fn set_mask(&self, pid: Pid, mask: u64) {
        let task = self.task(pid);
        self.lock_pi(task);
        let cpu = self.lock_rq_of(task);
        let runs = self.rqs[cpu].current.get() == Current::Task(pid) && task.on_rq.get();
        let queued = task.on_rq.get();
        if queued {
            if runs {
                self.update_current(cpu);
                self.scheduler.stopping(&task.sched, false);
            }
            self.unlink(task);
            self.set_queued(task, false);
        }
        task.sched.allow(mask);
        self.scheduler.set_cpumask(&task.sched);
        if queued {
            self.set_queued(task, true);
            self.enqueue(task, cpu, 0);
        }
        if runs {
            self.unlink(task);
            self.scheduler.running(&task.sched);
        }
        if !queued || mask >> cpu & 1 == 1 {
            self.unlock(cpu);
        } else if runs {
            self.rqs[cpu].stop.borrow_mut().push_back(pid);
            self.resched(cpu);
            self.unlock(cpu);
        } else {
            self.move_queued(task, cpu);
        }
        self.unlock_pi(task);
    }

    /// `move_queued_task`: to any CPU of its mask. Lets go of the CPU's lock.
    fn move_queued(&self, task: &Task, from: usize) {
        self.unlink(task);
        self.set_queued(task, false);
        task.is_migrating.set(true);
        let allowed = task.sched.allowed();
        let to = self.any_of(allowed);
        task.sched.cpu.set(to as u32);
        self.unlock(from);
        self.lock(to);
        task.is_migrating.set(false);
        self.begin(task, to, 0);
        self.unlock(to);
    }

    fn any_of(&self, cpus: u64) -> usize {
        let start = self.random(64);
        (cpus.rotate_right(start).trailing_zeros() + start) as usize % 64
    }

    /// `migration_cpu_stop`, for each task that must leave this CPU.
    fn run_stopper(&self, cpu: usize) {
        loop {
            let Some(pid) = self.rqs[cpu].stop.borrow_mut().pop_front() else { break };
            let task = self.task(pid);
            self.lock_pi(task);
            let at = self.lock_rq_of(task);
            if at == cpu && task.on_rq.get() && task.sched.allowed() >> cpu & 1 == 0 {
                self.move_queued(task, cpu);
            } else {
                self.unlock(at);
            }
            self.unlock_pi(task);
        }
        self.rqs[cpu].resched.set(true);
    }

    // ---- weights and classes ----

    /// `reweight_task`.
    pub(crate) fn set_weight(&self, pid: Pid, weight: u32) {
        let task = self.task(pid);
        self.lock_pi(task);
        let cpu = self.lock_rq_of(task);
        if !task.is_away.get() {
            self.scheduler.set_weight(&task.sched, weight);
        }
        self.unlock(cpu);
        self.unlock_pi(task);
    }

    /// `sched_setscheduler`: a task goes to a higher class, where it has had `ran_ns` of CPU time when a
    /// timer of this CPU brings it back.
    pub(crate) fn leave_class(&self, pid: Pid, cpu: usize, ran_ns: u64) {
        let task = self.task(pid);
        self.lock_pi(task);
        let at = self.lock_rq_of(task);
        let runs = self.rqs[at].current.get() == Current::Task(pid);
        if task.on_rq.get() && !runs && !task.is_away.get() {
            self.unlink(task);
            self.set_queued(task, false);
            task.on_rq.set(false);
            task.is_runnable.set(false);
            self.scheduler.disable(&task.sched);
            task.is_away.set(true);
            task.sched.sum_exec_ns.set(task.sched.sum_exec_ns.get() + ran_ns);
            self.timers.borrow_mut().insert((self.now_ns.get() + ran_ns, cpu, pid));
        }
        self.unlock(at);
        self.unlock_pi(task);
    }

    /// A higher class takes a CPU for a while.
    pub(crate) fn hold(&self, cpu: usize, ns: u64) {
        self.lock(cpu);
        self.rqs[cpu].held_until.set(self.now_ns.get() + ns);
        self.resched(cpu);
        self.unlock(cpu);
    }

    // ---- interrupts ----

    /// What waits for interrupts to be on: kicks of the last callbacks, timers, the tick.
    pub(crate) fn interrupts(&self, cpu: usize, is_frozen: bool) {
        self.kicks(cpu);
        let due = self.timers.borrow().iter().find(|timer| timer.1 == cpu).copied();
        if let Some(timer) = due.filter(|timer| timer.0 <= self.now_ns.get() && !is_frozen) {
            self.timers.borrow_mut().remove(&timer);
            self.come_back(timer.2);
            self.wake(timer.2);
            self.kicks(cpu);
        }
        let rq = &self.rqs[cpu];
        if rq.current.get() == Current::Higher && rq.held_until.get() <= self.now_ns.get() {
            rq.resched.set(true);
        }
        if rq.next_tick.get() <= self.now_ns.get() {
            rq.next_tick.set(self.now_ns.get() + self.tick_ns);
            self.tick(cpu);
            self.kicks(cpu);
        }
    }

    /// The timer of a task that went to a higher class: it is ours again.
    fn come_back(&self, pid: Pid) {
        let task = self.task(pid);
        self.lock_pi(task);
        let cpu = self.lock_rq_of(task);
        if task.is_away.replace(false) {
            self.scheduler.enable(&task.sched);
        }
        self.unlock(cpu);
        self.unlock_pi(task);
    }

    /// `scheduler_tick`.
    fn tick(&self, cpu: usize) {
        self.lock(cpu);
        self.update_current(cpu);
        if let Some(task) = self.current_task(cpu) {
            self.scheduler.tick(&task.sched);
            if task.sched.slice.get() == 0 {
                self.resched(cpu);
            }
        }
        self.unlock(cpu);
    }

    /// `kick_cpus_irq_workfn`.
    fn kicks(&self, cpu: usize) {
        let (idle, preempt) = (self.rqs[cpu].kick_idle.take(), self.rqs[cpu].kick_preempt.take());
        for other in (0..self.rqs.len()).filter(|other| (idle | preempt) >> other & 1 == 1) {
            self.lock(other);
            if preempt >> other & 1 == 1 {
                if let Some(task) = self.current_task(other) {
                    task.sched.slice.set(0);
                }
                self.resched(other);
            } else if !self.is_busy(other) {
                self.resched(other);
            }
            self.unlock(other);
        }
    }

    // ---- what tasks do ----

    /// `sched_yield`.
    pub(crate) fn yield_current(&self, cpu: usize) {
        self.lock(cpu);
        self.update_current(cpu);
        if let Some(task) = self.current_task(cpu) {
            self.scheduler.yield_task(&task.sched);
        }
        self.resched(cpu);
        self.unlock(cpu);
    }

    /// The current task sleeps for a while.
    pub(crate) fn sleep(&self, cpu: usize, ns: u64) {
        if let Some(task) = self.current_task(cpu) {
            task.is_runnable.set(false);
            self.timers.borrow_mut().insert((self.now_ns.get() + ns, cpu, task.sched.pid));
            self.rqs[cpu].resched.set(true);
        }
    }
}
