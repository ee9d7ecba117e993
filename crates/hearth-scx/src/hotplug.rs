//! CPUs that go away and come back. sched_ext ends a scheduler that does not handle it (Hearth does not)
//! with `SCX_ECODE_RSN_HOTPLUG` and asks for it again; it is loaded anew for the machine as it then is,
//! while tasks go on.

use crate::task::Verdict;
use crate::{Current, Host, Kernel};
use hearth_abi::native::Scheduler;
use hearth_machine::CpuSet;

impl<H: Host> Kernel<H> {
    /// From now on these CPUs are there, and `scheduler`, loaded for them, takes over; the CPU `by`
    /// sees to it. No other is in the middle of anything, and those that go away are [held](Self::hold) for
    /// good and run a higher class.
    pub fn restart(&self, by: usize, online: CpuSet, scheduler: Scheduler) {
        self.run_on(by);
        let tasks: Vec<_> = self.tasks().into_iter().filter(|task| !task.is_dead.get()).collect();
        for task in tasks.iter().filter(|task| !task.is_away.get()) {
            self.unlink(task);
            self.scheduler().disable(&task.sched);
        }
        self.forget_scheduler(online);
        self.replace(scheduler);
        self.begins();
        for task in &tasks {
            if (task.sched.allowed() & online).is_empty() {
                // As `select_fallback_rq` does.
                task.sched.allow(CpuSet::first(self.cpus()));
            }
            // That of one that may not move now, for when it may.
            let wide = task.wide_mask.get();
            if !wide.is_empty() && (wide & online).is_empty() {
                task.wide_mask.set(CpuSet::first(self.cpus()));
            }
            if !online.has(task.cpu()) {
                task.sched.cpu.set(self.host.choose(self.cpus_of(task)) as u32);
            }
            self.init_task(task, false, None);
            if !task.is_away.get() {
                self.scheduler().enable(&task.sched);
                self.tell_mask(task);
            }
            if task.on_rq.get() {
                self.has_waited(task);
                self.waits(task, self.now_ps());
                self.enqueue(task, task.cpu(), 0);
                self.reenqueue_local(task.cpu());
            }
            if self.current(task.cpu()) == Current::Task(task.pid()) {
                self.unlink(task);
                self.scheduler().running(&task.sched);
            }
        }
        online.iter().for_each(|cpu| self.resched(cpu));
    }

    /// What the kernel kept for a scheduler that has ended.
    fn forget_scheduler(&self, online: CpuSet) {
        self.queues.borrow_mut().by_id.clear();
        for task in self.tasks() {
            task.storage.clear();
            task.verdict.set(Verdict::None);
        }
        self.online.set(online);
        self.idle.take();
        for (cpu, rq) in self.rqs.iter().enumerate() {
            rq.kick_idle.take();
            rq.kick_preempt.take();
            rq.reenqueues.set(false);
            rq.is_late.set(false);
            self.set_idle(cpu, rq.current.get() == Current::Idle && online.has(cpu));
        }
    }
}
