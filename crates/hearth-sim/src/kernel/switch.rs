//! A CPU goes on with another task, and what that costs.

use super::task::task_of;
use super::{Begin, Entry, Flush, Kernel, pid_of};
use crate::program::{End, TaskId};
use hearth_machine::CpuSet;
use hearth_scx::Current;

impl Kernel {
    /// The CPU inspects its run queue. `stays`: the current task remains runnable.
    pub(crate) fn schedule(&mut self, cpu: usize, why: End, stays: bool) {
        let previous = self.cpus[cpu].current;
        self.cpus[cpu].resched = None;
        if let Some(task) = previous {
            self.account.interval_ends(cpu, &self.ports[cpu], why);
            self.stop_higher(task, cpu, stays);
            if !stays {
                self.scx.block(cpu);
            }
        }
        // The switch belongs to the interval that it leads to.
        let begin = Begin::at(&self.ports[cpu]);
        self.scx.run_on(cpu);
        let next = match self.scx.schedule(cpu, || self.charge(cpu, Entry::Switch)) {
            Current::Task(pid) => Some(task_of(pid)),
            Current::Higher => self.higher.first(cpu),
            Current::Idle | Current::Stopper => None,
        };
        if next != previous {
            self.end_runs_beside(cpu, begin);
        }
        match next {
            Some(task) => {
                let displaced = previous.filter(|&previous| stays && previous != task);
                let comes = self.tasks[task].last_cpu.is_some_and(|last| last != cpu);
                if let Some(displaced) = displaced.filter(|_| comes) {
                    self.account.displaces(task, displaced);
                }
                self.start(task, cpu, begin);
            }
            None => {
                self.cpus[cpu].current = None;
                self.account.idle_begins(cpu);
            }
        }
        self.tell_others(cpu, End::Interrupt);
    }

    /// The current task gives up its CPU but stays runnable (`sched_yield`).
    pub(crate) fn yield_current(&mut self, cpu: usize, why: End) {
        self.scx.run_on(cpu);
        self.higher.yields(cpu);
        self.scx.yield_current(cpu);
        self.scx.take_told();
        self.cpus[cpu].resched = Some(why);
    }

    /// The current task may only run on `cpus` from now on, and goes to one of them. In the kernel the
    /// migration thread takes it from the queue and puts it into another; here it blocks and is woken.
    pub(crate) fn migrate_current(&mut self, cpu: usize, cpus: CpuSet) {
        let Some(task) = self.cpus[cpu].current else { return };
        self.schedule(cpu, End::SystemCall, false);
        self.scx.allow(pid_of(task), cpus);
        self.wake(task, cpu, End::SystemCall);
    }

    fn start(&mut self, task: TaskId, cpu: usize, begin: Begin) {
        let now_ps = self.ports[cpu].now_ps();
        let begins_slice = self.account.begins_slice(cpu, task);
        if self.flush == Flush::EachInterval || self.flush == Flush::EachSlice && begins_slice {
            self.hardware.borrow_mut().flush(cpu);
        }
        self.start_higher(task, cpu);
        // The switch is not charged to a task.
        self.scx.charge_from_now(cpu);
        let slot = &mut self.tasks[task];
        let from = slot.last_cpu.replace(cpu);
        let waited_ps = slot.woken_ps.take().map(|woken_ps| now_ps.saturating_sub(woken_ps));
        self.ports[cpu]
            .set_task(super::owner(task), self.account.interval_begins(cpu, task, from, waited_ps, begin));
        if self.cpus[cpu].current.replace(task).is_none() {
            // An idle CPU has no ticks.
            self.cpus[cpu].next_tick_ps = self.tick_after(cpu, now_ps);
        }
    }
}
