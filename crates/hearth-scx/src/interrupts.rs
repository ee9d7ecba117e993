//! What happens in interrupts: the tick, and kicks.

use crate::{Current, Host, Kernel, Task};
use hearth_machine::CpuSet;
use std::rc::Rc;

impl<H: Host> Kernel<H> {
    /// `scheduler_tick`.
    pub fn tick(&self, cpu: usize) {
        self.lock(cpu);
        self.update_current(cpu);
        if let Some(task) = self.current_task(cpu) {
            self.scheduler().tick(&task.sched);
            if task.sched.slice.get() == 0 {
                self.resched(cpu);
            }
        }
        self.unlock(cpu);
    }

    /// `kick_cpus_irq_workfn`: carries out the kicks that the scheduler asked for on this CPU.
    pub fn kicks(&self, cpu: usize) {
        let (idle, preempt) = (self.rqs[cpu].kick_idle.take(), self.rqs[cpu].kick_preempt.take());
        for other in (idle | preempt).iter() {
            self.lock(other);
            if preempt.has(other) {
                self.update_current(other);
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

    /// A CPU with nothing to do although a task waits that it could run, and the task. Tasks that declare what they work on may wait for their data.
    pub fn idle_beside_work(&self) -> Option<(usize, crate::Pid)> {
        let is_for_any = |task: &&Rc<Task>| task.is_in_dispatch_queue() && task.sched.declared.get() == 0;
        self.tasks().iter().filter(is_for_any).find_map(|task| {
            let cpus = self.cpus_open_to(task);
            let is_idle = |cpu: &usize| self.current(*cpu) == Current::Idle;
            cpus.iter().find(is_idle).map(|cpu| (cpu, task.pid()))
        })
    }

    /// The CPUs that may take a task which waits: the one to which it is attached, unless its mask
    /// has lost that.
    pub fn cpus_open_to(&self, task: &Task) -> CpuSet {
        let cpus = self.cpus_of(task);
        let attached = self.remembered(task).and_then(|task| usize::try_from(task.attached_cpu).ok());
        attached.filter(|cpu| cpus.has(*cpu)).map_or(cpus, CpuSet::one)
    }
}
