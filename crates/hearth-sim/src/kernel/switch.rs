//! Dispatch: a CPU inspects its run queue and goes on with a task (`__schedule` and its sched_ext
//! part: `balance_one`, `put_prev_task_scx`, `set_next_task_scx`).

use super::scx::Callback;
use super::{Begin, Entry, Flush, Kernel, SLICE_DEFAULT_NS, State};
use crate::program::{End, TaskId};
use hearth_native::TASK_QUEUED;
use std::rc::Rc;

impl Kernel {
    /// The CPU inspects its run queue. `stays`: the current task remains runnable.
    pub(crate) fn schedule(&mut self, cpu: usize, why: End, stays: bool) {
        self.cpus[cpu].resched = None;
        self.charge_slice(cpu);
        let previous = self.cpus[cpu].current;
        let staying = previous.filter(|_| stays);
        match previous {
            Some(_) => self.account.interval_ends(cpu, &self.ports[cpu], why),
            None => self.scx.set_idle(cpu, false),
        }
        if let (Some(task), false) = (previous, stays) {
            self.leave(task, cpu);
        }
        // The switch belongs to the interval that it leads to.
        let begin = Begin::at(&self.ports[cpu]);
        self.charge(cpu, Entry::Switch);
        let next = self.pick(cpu, staying);
        let displaced = staying.filter(|_| next != staying);
        if let Some(task) = displaced {
            self.put_previous(task, cpu);
        }
        match next {
            Some(task) => {
                if previous.is_none() {
                    self.enter(cpu, Callback::Other);
                    self.scheduler.update_idle(cpu, false);
                }
                let comes = self.tasks[task].last_cpu.is_some_and(|last| last != cpu);
                if let Some(displaced) = displaced.filter(|_| comes) {
                    self.account.displaces(task, displaced);
                }
                self.start(task, cpu, next == staying, begin);
            }
            None => {
                self.cpus[cpu].current = None;
                self.scx.set_idle(cpu, true);
                self.account.idle_begins(cpu);
                if previous.is_some() {
                    self.enter(cpu, Callback::Other);
                    self.scheduler.update_idle(cpu, true);
                }
            }
        }
        self.serve_kicks(cpu, End::Interrupt);
    }

    /// The current task may only run on `cpus` from now on, and goes to one of them. In the kernel the
    /// migration thread takes it from the queue and puts it into another; here it blocks and is woken.
    pub(crate) fn migrate_current(&mut self, cpu: usize, cpus: u64) {
        let Some(task) = self.cpus[cpu].current else { return };
        self.schedule(cpu, End::SystemCall, false);
        self.allow(task, cpus);
        self.wake(task, cpu, End::SystemCall);
    }

    /// `set_cpus_allowed_scx`, of a task that waits in no queue.
    pub(crate) fn allow(&mut self, task: TaskId, cpus: u64) {
        let sched = &self.tasks[task].sched;
        sched.allow(cpus);
        self.scheduler.set_cpumask(sched);
    }

    /// The current task is not runnable any more: `stopping`.
    fn leave(&mut self, task: TaskId, cpu: usize) {
        let sched = Rc::clone(&self.tasks[task].sched);
        self.enter(cpu, Callback::Other);
        self.scheduler.stopping(&sched, false);
        sched.on_cpu.set(0);
        sched.flags.set(sched.flags.get() & !TASK_QUEUED);
        if self.tasks[task].state != State::Dead {
            self.tasks[task].state = State::Blocked;
        } else {
            self.scx.remove_task(sched.pid);
        }
    }

    /// The next task: the previous one if it has time left, one from the local queue, or whatever the
    /// scheduler dispatches.
    fn pick(&mut self, cpu: usize, previous: Option<TaskId>) -> Option<TaskId> {
        let has_time = |kernel: &Self| previous.filter(|&task| kernel.tasks[task].sched.slice.get() > 0);
        if let Some(task) = has_time(self) {
            return Some(task);
        }
        if !self.scx.has_local(cpu) {
            let sched = previous.map(|task| Rc::clone(&self.tasks[task].sched));
            self.enter(cpu, Callback::Dispatch);
            self.scheduler.dispatch(cpu, sched.as_deref());
            if let Some(task) = has_time(self) {
                return Some(task);
            }
        }
        if let Some(pid) = self.scx.pop_local(cpu) {
            return Some(pid as TaskId);
        }
        let task = previous?;
        self.tasks[task].sched.slice.set(SLICE_DEFAULT_NS);
        Some(task)
    }

    /// The previous task is still runnable, but another runs: `stopping` and `enqueue`.
    fn put_previous(&mut self, task: TaskId, cpu: usize) {
        let sched = Rc::clone(&self.tasks[task].sched);
        self.enter(cpu, Callback::Other);
        self.scheduler.stopping(&sched, true);
        self.tasks[task].state = State::Waiting;
        self.waits(task, cpu);
        if sched.slice.get() > 0 {
            self.scx.push_local_front(sched.pid, cpu);
        } else {
            self.enqueue(task, cpu, cpu, 0);
        }
        sched.on_cpu.set(0);
    }

    fn start(&mut self, task: TaskId, cpu: usize, goes_on: bool, begin: Begin) {
        let now_ps = self.ports[cpu].now_ps();
        let begins_slice = self.account.begins_slice(cpu, task);
        if self.flush == Flush::EachInterval || self.flush == Flush::EachSlice && begins_slice {
            self.hardware.borrow_mut().flush(cpu);
        }
        let slot = &mut self.tasks[task];
        let from = slot.last_cpu.replace(cpu);
        slot.state = State::Running;
        let waited_ps = slot.woken_ps.take().map(|woken_ps| now_ps.saturating_sub(woken_ps));
        let sched = Rc::clone(&slot.sched);
        sched.cpu.set(cpu as u32);
        sched.on_cpu.set(1);
        self.ports[cpu]
            .set_task(super::owner(task), self.account.interval_begins(cpu, task, from, waited_ps, begin));
        let kernel_cpu = &mut self.cpus[cpu];
        kernel_cpu.charged_ps = now_ps;
        if kernel_cpu.current.is_none() {
            // An idle CPU has no ticks; the next one comes when all CPUs have theirs.
            kernel_cpu.next_tick_ps = (now_ps / self.tick_ps + 1) * self.tick_ps;
        }
        kernel_cpu.current = Some(task);
        if !goes_on {
            self.enter(cpu, Callback::Other);
            self.scheduler.running(&sched);
        }
    }
}
