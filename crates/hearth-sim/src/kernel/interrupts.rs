//! Wake-ups and what interrupts a CPU: kicks, devices, its tick.

use super::{Entry, Kernel, State, pid_of};
use crate::program::{End, TaskId};
use hearth_abi::native::WAKE_SYNC;

impl Kernel {
    /// Makes a blocked task runnable, by the CPU `waker`. If it is not blocked, its next block returns at
    /// once.
    pub(crate) fn wake(&mut self, task: TaskId, waker: usize, why: End) {
        self.wake_with(task, waker, why, 0);
    }

    /// As [`wake`](Self::wake), by who is about to sleep.
    pub(crate) fn wake_sync(&mut self, task: TaskId, waker: usize, why: End) {
        self.wake_with(task, waker, why, WAKE_SYNC);
    }

    fn wake_with(&mut self, task: TaskId, waker: usize, why: End, flags: u64) {
        match self.state(task) {
            State::Blocked => {}
            State::Dead => return,
            State::Waiting | State::Running => {
                self.tasks[task].wake_pending = true;
                return;
            }
        }
        self.tasks[task].woken_ps = Some(self.ports[waker].now_ps());
        self.scx.run_on(waker);
        if self.tasks[task].is_higher() {
            self.wake_higher(task);
        } else {
            self.scx.wake(pid_of(task), flags);
        }
        self.tell_others(waker, why);
    }

    /// CPU `from` has done what may concern others: they are interrupted.
    pub(super) fn tell_others(&mut self, from: usize, why: End) {
        self.interrupt_told(from, why);
        self.scx.run_on(from);
        self.scx.kicks(from);
        self.interrupt_told(from, why);
    }

    /// CPUs that shall look at their run queues; those other than `from` are interrupted for it.
    fn interrupt_told(&mut self, from: usize, why: End) {
        let mut told = self.scx.take_told();
        while let Some(cpu) = told.pop() {
            if self.cpus[cpu].resched.is_none() {
                self.reschedule(cpu, from, why);
            }
        }
    }

    fn reschedule(&mut self, cpu: usize, from: usize, why: End) {
        self.cpus[cpu].resched = Some(if cpu == from { why } else { End::Interrupt });
        if cpu == from {
            return;
        }
        if self.cpus[cpu].current.is_none() {
            let now_ps = self.ports[from].now_ps().max(self.ports[cpu].now_ps());
            self.account.idle_until(cpu, self.ports[cpu].now_ps(), now_ps);
            self.ports[cpu].set_now_ps(now_ps);
        }
        self.charge(cpu, Entry::Interrupt);
    }

    /// An event reaches a CPU that may be idle: its clock moves up to it.
    pub(crate) fn interrupt(&mut self, cpu: usize, at_ps: u64) {
        let now_ps = self.ports[cpu].now_ps();
        if !self.is_active(cpu) && at_ps > now_ps {
            self.account.idle_until(cpu, now_ps, at_ps);
            self.ports[cpu].set_now_ps(at_ps);
        }
        self.charge(cpu, Entry::Interrupt);
    }

    /// The timer interrupt of a CPU that runs a task.
    pub(crate) fn tick(&mut self, cpu: usize) {
        self.cpus[cpu].next_tick_ps += self.tick_ps;
        self.charge(cpu, Entry::Tick);
        self.scx.run_on(cpu);
        self.scx.tick(cpu);
        self.interrupt_told(cpu, End::Quantum);
        self.tell_others(cpu, End::Interrupt);
    }

    /// When a CPU that was idle has its next tick: ticks go on as if it had not been.
    pub(super) fn tick_after(&self, cpu: usize, now_ps: u64) -> u64 {
        let early_ps = self.tick_ps - self.cpus[cpu].tick_phase_ps;
        ((now_ps + early_ps) / self.tick_ps + 1) * self.tick_ps - early_ps
    }
}
