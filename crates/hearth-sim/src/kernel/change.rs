//! What programs change of tasks and of the machine: weights, masks, classes, CPUs.

use super::{Kernel, State, pid_of};
use crate::program::{Class, End, TaskId};
use hearth_machine::CpuSet;
use hearth_scx::Current;
use std::io::Error;

impl Kernel {
    /// The weight of a task, 100 at nice 0.
    pub(crate) fn set_weight(&mut self, task: TaskId, weight: u32, from: usize) {
        self.scx.run_on(from);
        self.scx.set_weight(pid_of(task), weight.clamp(1, 10_000));
        self.tell_others(from, End::SystemCall);
    }

    /// The CPUs that a task may run on. False, as from the kernel, if none of them is there.
    pub(crate) fn set_mask(&mut self, task: TaskId, cpus: CpuSet, from: usize) -> bool {
        self.scx.run_on(from);
        let cpus = cpus & self.all_cpus();
        let changed = self.scx.set_mask(pid_of(task), cpus);
        if changed {
            self.tasks[task].mask = cpus;
        }
        self.tell_others(from, End::SystemCall);
        changed
    }

    /// A task goes to another class. One that runs blocks in the one and wakes in the other.
    pub(crate) fn set_class(&mut self, task: TaskId, class: Class, from: usize) {
        let state = self.state(task);
        if self.tasks[task].class == class || state == State::Dead {
            return;
        }
        if let Some(cpu) = (0..self.cpus.len()).find(|&cpu| self.cpus[cpu].current == Some(task)) {
            self.schedule(cpu, End::SystemCall, false);
        }
        self.scx.run_on(from);
        self.tasks[task].class = class;
        match class {
            Class::RealTime => {
                self.scx.leave_class(pid_of(task));
            }
            Class::Normal => {
                self.leave_higher(task);
                let ran_ns = std::mem::take(&mut self.tasks[task].higher_ps) / 1000;
                self.scx.join_class(pid_of(task), ran_ns);
            }
        }
        if state == State::Blocked {
            return self.tell_others(from, End::SystemCall);
        }
        self.wake(task, from, End::SystemCall);
    }

    /// A CPU goes away or comes back; the scheduler ends, and is loaded anew. Not the last one.
    pub(crate) fn set_online(&mut self, cpu: usize, is_online: bool, from: usize) {
        let others = self.scx.online().without(cpu);
        if cpu >= self.cpus.len() || others.is_empty() || (others != self.scx.online()) == is_online {
            return;
        }
        let mut moved = Vec::new();
        if !is_online {
            self.interrupt(cpu, self.ports[from].now_ps());
            moved = self.clear_cpu(cpu);
        }
        let online = if is_online { others.with(cpu) } else { others };
        let by = if online.has(from) { from } else { online.lowest().unwrap_or(from) };
        if by != from {
            self.interrupt(by, self.ports[from].now_ps());
        }
        if let Err(error) = self.restart(by, online) {
            self.failure = Some(format!("cannot load the scheduler: {error}"));
        }
        if is_online {
            self.scx.let_go(cpu);
        }
        self.tell_others(by, End::SystemCall);
        moved.into_iter().for_each(|task| self.wake(task, by, End::SystemCall));
    }

    /// A scheduler for these CPUs takes over.
    fn restart(&mut self, by: usize, online: CpuSet) -> Result<(), Error> {
        self.scx.restart(by, online, (self.load)(online)?);
        self.plan_for_another()
    }

    /// All tasks leave a CPU that goes away; the real-time tasks among them, which are to be woken elsewhere.
    fn clear_cpu(&mut self, cpu: usize) -> Vec<TaskId> {
        self.scx.run_on(cpu);
        let higher = self.higher.on(cpu);
        // Those that wait before the one that runs, for else they would run next.
        higher.iter().skip(1).for_each(|&task| self.leave_higher(task));
        if self.cpus[cpu].current.is_some_and(|task| self.tasks[task].is_higher()) {
            self.schedule(cpu, End::Interrupt, false);
        } else if let Some(&first) = higher.first() {
            self.leave_higher(first);
        }
        self.scx.run_on(cpu);
        self.scx.hold(cpu);
        // The stopper goes first.
        while self.scx.current(cpu) != Current::Higher {
            self.schedule(cpu, End::Interrupt, true);
        }
        higher
    }

    /// This CPU, or if it has gone away another.
    pub(crate) fn online_or_other(&self, cpu: usize) -> usize {
        let online = self.scx.online();
        if online.has(cpu) { cpu } else { online.lowest().unwrap_or(cpu) }
    }
}
