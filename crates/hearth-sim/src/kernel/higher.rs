//! A class above sched_ext, as simple as can be: each CPU runs its real-time tasks first come, first
//! served, for as long as they like. It is here for what it does to the tasks below it.

use super::Kernel;
use crate::program::TaskId;
use std::collections::VecDeque;

/// The real-time tasks that are runnable, by CPU. The first of each runs.
pub(super) struct HigherClass(Vec<VecDeque<TaskId>>);

impl HigherClass {
    pub(super) fn new(cpus: usize) -> Self {
        Self(vec![VecDeque::new(); cpus])
    }

    /// The one that runs, or shall.
    pub(super) fn first(&self, cpu: usize) -> Option<TaskId> {
        self.0[cpu].front().copied()
    }

    /// Whether a task is runnable here.
    pub(super) fn has(&self, task: TaskId) -> bool {
        self.0.iter().any(|tasks| tasks.contains(&task))
    }

    /// The one that runs goes behind the others.
    pub(super) fn yields(&mut self, cpu: usize) {
        let first = self.0[cpu].pop_front();
        self.0[cpu].extend(first);
    }

    fn add(&mut self, task: TaskId, cpu: usize) {
        self.0[cpu].push_back(task);
    }

    /// The CPU that it was on, if none is left there.
    fn remove(&mut self, task: TaskId) -> Option<usize> {
        let cpu = self.0.iter().position(|tasks| tasks.contains(&task))?;
        self.0[cpu].retain(|&other| other != task);
        self.0[cpu].is_empty().then_some(cpu)
    }

    /// All that are on a CPU.
    pub(super) fn on(&self, cpu: usize) -> Vec<TaskId> {
        self.0[cpu].iter().copied().collect()
    }
}

impl Kernel {
    /// A real-time task is runnable: on the CPU where it was, if it may.
    pub(super) fn wake_higher(&mut self, task: TaskId) {
        let sched = &self.tasks[task].scx.sched;
        let last = sched.cpu.get() as usize;
        let allowed = sched.allowed() & self.scx.online();
        let cpus = if allowed.is_empty() { self.scx.online() } else { allowed };
        let cpu = if cpus.has(last) { last } else { cpus.lowest().unwrap_or(last) };
        sched.cpu.set(cpu as u32);
        self.higher.add(task, cpu);
        self.scx.hold(cpu);
    }

    /// A real-time task is not runnable any more.
    pub(super) fn leave_higher(&mut self, task: TaskId) {
        if let Some(cpu) = self.higher.remove(task) {
            self.scx.let_go(cpu);
        }
    }

    /// The current task, if it is a real-time task, stops.
    pub(super) fn stop_higher(&mut self, task: TaskId, cpu: usize, stays: bool) {
        let now_ps = self.ports[cpu].now_ps();
        let slot = &mut self.tasks[task];
        if !slot.is_higher() {
            return;
        }
        slot.higher_ps += now_ps.saturating_sub(slot.higher_since_ps);
        slot.higher_since_ps = now_ps;
        slot.scx.sched.on_cpu.set(0);
        if !stays {
            self.leave_higher(task);
        }
    }

    /// The next task, if it is a real-time task, runs.
    pub(super) fn start_higher(&mut self, task: TaskId, cpu: usize) {
        let slot = &mut self.tasks[task];
        if slot.is_higher() {
            slot.higher_since_ps = self.ports[cpu].now_ps();
            slot.scx.sched.on_cpu.set(1);
        }
    }
}
