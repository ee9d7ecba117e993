//! Wake-ups.

use crate::task::{Pid, Task, Verdict};
use crate::{Current, Host, Kernel};
use hearth_abi::native::ENQ_WAKEUP;

impl<H: Host> Kernel<H> {
    /// `try_to_wake_up`, by the CPU that runs; `flags` may have [`WAKE_SYNC`](hearth_abi::native::WAKE_SYNC): the
    /// waker is about to sleep.
    pub fn wake(&self, pid: Pid, flags: u64) {
        let task = self.task(pid);
        self.lock_pi(&task);
        if !task.is_runnable.get() && !task.is_away.get() {
            let cpu = self.lock_rq_of(&task);
            let was_on_rq = task.on_rq.get();
            task.is_runnable.set(was_on_rq);
            self.unlock(cpu);
            if !was_on_rq {
                self.activate(&task, flags);
            }
        }
        self.unlock_pi(&task);
    }

    fn activate(&self, task: &Task, flags: u64) {
        while task.sched.on_cpu.get() != 0 {
            self.wait();
        }
        task.is_runnable.set(true);
        task.verdict.set(Verdict::None);
        let cpus = self.cpus_of(task);
        let Some(cpu) = self.select_cpu(task, flags) else { return };
        let cpu = if cpus.has(cpu) { cpu } else { cpus.lowest().unwrap_or(cpu) };
        task.sched.cpu.set(cpu as u32);
        self.lock(cpu);
        self.waits(task, self.now_ps());
        self.begin(task, cpu, ENQ_WAKEUP);
        self.unlock(cpu);
    }

    /// `select_task_rq`: a task that may run on one CPU only, if only for now, is not asked about.
    fn select_cpu(&self, task: &Task, flags: u64) -> Option<usize> {
        if task.sched.nr_cpus_allowed.get() == 1 || task.is_pinned() {
            return task.sched.allowed().lowest();
        }
        let ask = || self.scheduler().select_cpu(&task.sched, task.cpu(), flags);
        let cpu = self.placing(task, ask);
        let valid = usize::try_from(cpu).ok().filter(|&cpu| cpu < self.cpus());
        if valid.is_none() {
            self.error(format!("invalid CPU {cpu} from ops.select_cpu() for {}", task.label()));
        }
        valid
    }

    /// `activate_task` and `wakeup_preempt`.
    pub(crate) fn begin(&self, task: &Task, cpu: usize, flags: u64) {
        task.on_rq.set(true);
        task.set_queued(true);
        self.scheduler().runnable(&task.sched, flags);
        match task.verdict.get() {
            Verdict::None => self.enqueue(task, cpu, flags),
            _ => self.carry_out(task, cpu),
        }
        if self.current(cpu) == Current::Idle {
            self.resched(cpu);
        }
        self.reenqueue_local(cpu);
    }
}
