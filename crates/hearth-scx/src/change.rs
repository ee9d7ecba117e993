//! Changes of a task: its mask, its weight, its class; and CPUs that a higher class takes.

use crate::task::{Pid, Task};
use crate::{Current, Host, Kernel};
use hearth_machine::CpuSet;

impl<H: Host> Kernel<H> {
    /// `sched_setaffinity`. Refused, as by the kernel, if none of them is there; and of a
    /// task that is pinned, for which the kernel's caller would wait.
    pub fn set_mask(&self, pid: Pid, mask: CpuSet) -> bool {
        if (mask & self.online()).is_empty() {
            return false;
        }
        let task = self.task(pid);
        self.lock_pi(&task);
        let cpu = self.lock_rq_of(&task);
        if task.is_pinned() {
            self.unlock(cpu);
            self.unlock_pi(&task);
            return false;
        }
        let runs = self.change_mask(&task, cpu, || task.sched.allow(mask));
        if !task.on_rq.get() || mask.has(cpu) {
            self.reenqueue_local(cpu);
            self.unlock(cpu);
        } else if runs {
            self.send_away(pid, cpu);
            self.unlock(cpu);
        } else {
            self.move_queued(&task, cpu);
        }
        self.unlock_pi(&task);
        true
    }

    /// A task that runs must leave its CPU: the stopper comes for it.
    fn send_away(&self, pid: Pid, cpu: usize) {
        self.rqs[cpu].stop.borrow_mut().push_back(pid);
        self.resched(cpu);
    }

    /// `do_set_cpus_allowed`: a task that waits is enqueued anew, and one that runs stops and goes on. Whether
    /// it runs.
    fn change_mask(&self, task: &Task, cpu: usize, set: impl FnOnce()) -> bool {
        let queued = task.on_rq.get();
        let runs = self.current(cpu) == Current::Task(task.pid()) && queued;
        if queued {
            if runs {
                self.update_current(cpu);
                self.scheduler().stopping(&task.sched, false);
            }
            self.unlink(task);
            task.set_queued(false);
        }
        set();
        self.tell_mask(task);
        if queued {
            task.set_queued(true);
            self.enqueue(task, cpu, 0);
        }
        if runs {
            self.unlink(task);
            self.scheduler().running(&task.sched);
        }
        runs
    }

    /// `migrate_disable`, of the task that a CPU runs.
    pub fn disable_migration(&self, cpu: usize) {
        if let Some(task) = self.current_task(cpu) {
            task.sched.migration_disabled.set(1);
        }
    }

    /// `migrate_disable_switch`: a task that has been switched out, and may run only here, has a mask that
    /// says so from now on. The CPU's lock is held.
    pub(crate) fn pin(&self, task: &Task, cpu: usize) {
        if !task.is_pinned() || !task.wide_mask.get().is_empty() {
            return;
        }
        self.gap();
        task.wide_mask.set(task.sched.allowed());
        self.change_mask(task, cpu, || task.sched.pin(CpuSet::one(cpu)));
    }

    /// `migrate_enable`, of the task that a CPU runs, which has kept its CPU so far.
    pub fn enable_migration(&self, cpu: usize) {
        let Some(task) = self.current_task(cpu).filter(|task| task.is_pinned()) else { return };
        let mask = task.wide_mask.take();
        if !mask.is_empty() {
            self.lock_pi(&task);
            self.lock(cpu);
            self.change_mask(&task, cpu, || task.sched.pin(mask));
            self.reenqueue_local(cpu);
            self.unlock(cpu);
            self.unlock_pi(&task);
        }
        task.sched.migration_disabled.set(0);
        // Its mask was changed when it had begun to keep its CPU.
        if !task.may_run_on(cpu) {
            self.send_away(task.pid(), cpu);
        }
    }

    /// Another mask for a task that need not leave its CPU now, and waits in no queue.
    pub fn allow(&self, pid: Pid, mask: CpuSet) {
        let task = self.task(pid);
        task.sched.allow(mask);
        self.tell_mask(&task);
    }

    /// `set_cpus_allowed_scx`. In another class nobody is told.
    pub(crate) fn tell_mask(&self, task: &Task) {
        if !task.is_away.get() {
            self.scheduler().set_cpumask(&task.sched);
        }
    }

    /// `move_queued_task`: to any CPU of its mask. Lets go of the CPU's lock.
    fn move_queued(&self, task: &Task, from: usize) {
        self.unlink(task);
        task.set_queued(false);
        task.is_migrating.set(true);
        let to = self.host.choose(self.cpus_of(task));
        task.sched.cpu.set(to as u32);
        self.unlock(from);
        self.lock(to);
        task.is_migrating.set(false);
        self.begin(task, to, 0);
        self.unlock(to);
    }

    /// `migration_cpu_stop`, for each task that must leave this CPU.
    pub(crate) fn run_stopper(&self, cpu: usize) {
        loop {
            let Some(pid) = self.rqs[cpu].stop.borrow_mut().pop_front() else { break };
            let task = self.task(pid);
            self.lock_pi(&task);
            let at = self.lock_rq_of(&task);
            if at == cpu && task.on_rq.get() && !task.may_run_on(cpu) && !task.is_pinned() {
                self.move_queued(&task, cpu);
            } else {
                self.unlock(at);
            }
            self.unlock_pi(&task);
        }
        self.resched(cpu);
    }

    /// `reweight_task`. In another class a task keeps its weight here for when it comes back.
    pub fn set_weight(&self, pid: Pid, weight: u32) {
        let task = self.task(pid);
        self.lock_pi(&task);
        let cpu = self.lock_rq_of(&task);
        if task.is_away.get() {
            task.sched.weight.set(weight);
        } else {
            self.scheduler().set_weight(&task.sched, weight);
        }
        self.unlock(cpu);
        self.unlock_pi(&task);
    }

    /// `sched_setscheduler`: a task that sleeps or waits goes to another class, where it sleeps. Whether it
    /// has; one that runs does not.
    pub fn leave_class(&self, pid: Pid) -> bool {
        let task = self.task(pid);
        self.lock_pi(&task);
        let cpu = self.lock_rq_of(&task);
        let leaves = self.current(cpu) != Current::Task(pid) && !task.is_away.get();
        if leaves {
            self.unlink(&task);
            self.has_waited(&task);
            task.set_queued(false);
            task.on_rq.set(false);
            task.is_runnable.set(false);
            self.scheduler().disable(&task.sched);
            task.is_away.set(true);
        }
        self.unlock(cpu);
        self.unlock_pi(&task);
        leaves
    }

    /// A task that sleeps in another class, where it has had `ran_ns` of CPU time, comes back.
    pub fn join_class(&self, pid: Pid, ran_ns: u64) {
        let task = self.task(pid);
        self.lock_pi(&task);
        let cpu = self.lock_rq_of(&task);
        if task.is_away.replace(false) {
            task.sched.sum_exec_ns.set(task.sched.sum_exec_ns.get() + ran_ns);
            self.scheduler().enable(&task.sched);
            self.tell_mask(&task);
        }
        self.unlock(cpu);
        self.unlock_pi(&task);
    }

    /// A higher class takes a CPU.
    pub fn hold(&self, cpu: usize) {
        self.lock(cpu);
        self.rqs[cpu].is_held.set(true);
        self.resched(cpu);
        self.unlock(cpu);
    }

    /// The higher class lets a CPU go.
    pub fn let_go(&self, cpu: usize) {
        self.lock(cpu);
        self.rqs[cpu].is_held.set(false);
        self.resched(cpu);
        self.unlock(cpu);
    }
}
