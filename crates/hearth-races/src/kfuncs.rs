//! sched_ext's kfuncs, with the locks that the kernel takes and lets go for them
//! (kernel/sched/ext.c).

use crate::state::{Pid, Place, State, Task, Verdict};
use hearth_native::{DSQ_LOCAL, KICK_IDLE, Kernel, MapValue, TASK_QUEUED, TaskStruct};
use std::rc::Rc;

impl State {
    /// `consume_remote_task`: the CPU's own lock is let go for that of the task's run queue, and the
    /// task may be gone by then.
    fn take_remote(&self, task: &Task, cpu: usize) -> bool {
        let from = task.sched.cpu.get() as usize;
        self.unlink(task);
        task.holder.set(Some(cpu));
        self.unlock(cpu);
        self.lock(from);
        let is_ours = task.holder.get() == Some(cpu) && task.sched.cpu.get() as usize == from;
        if is_ours {
            task.holder.set(None);
            task.is_migrating.set(true);
            task.sched.flags.set(task.sched.flags.get() & !TASK_QUEUED);
            task.sched.cpu.set(cpu as u32);
        }
        self.unlock(from);
        self.lock(cpu);
        if is_ours {
            task.sched.flags.set(task.sched.flags.get() | TASK_QUEUED);
            task.is_migrating.set(false);
            self.link_local(task, cpu, false);
        }
        is_ours
    }

    fn members(&self, id: u64) -> Vec<Pid> {
        let queues = self.queues.borrow();
        queues.get(&id).into_iter().flatten().map(|&(_, _, pid)| pid).collect()
    }

    fn may_run(task: &Task, cpu: usize) -> bool {
        task.sched.allowed() >> cpu & 1 == 1
    }

    fn pick(&self, candidates: u64) -> Option<usize> {
        let candidates = self.idle.get() & candidates;
        let start = self.random(64);
        let cpu = (candidates.rotate_right(start).trailing_zeros() + start) as usize % 64;
        (candidates != 0).then(|| {
            self.idle.set(self.idle.get() & !(1 << cpu));
            cpu
        })
    }
}

impl Kernel for State {
    fn create_dsq(&self, id: u64) -> i32 {
        self.queues.borrow_mut().entry(id).or_default();
        0
    }

    fn insert(&self, p: &TaskStruct, id: u64, slice: u64, vtime: Option<u64>, _flags: u64) {
        p.slice.set(slice.max(1));
        let verdict = match vtime {
            None if id == DSQ_LOCAL => Verdict::Local,
            None => return self.fail(format!("an insert into DSQ 0x{id:x} without vtime")),
            Some(vtime) => Verdict::Queue { id, vtime },
        };
        self.task(p.pid).verdict.set(verdict);
    }

    fn move_first_to_local(&self, id: u64) -> bool {
        let cpu = self.cpu.get();
        loop {
            self.preempt();
            let members = self.members(id);
            let first = members
                .into_iter()
                .map(|pid| self.task(pid))
                .find(|task| task.sched.cpu.get() as usize == cpu || Self::may_run(task, cpu));
            let Some(task) = first else { return false };
            if task.sched.cpu.get() as usize == cpu {
                self.unlink(task);
                self.link_local(task, cpu, false);
            } else if !self.take_remote(task, cpu) {
                continue;
            }
            self.rqs[cpu].dispatched.set(true);
            return true;
        }
    }

    fn queued(&self, id: u64) -> i32 {
        self.members(id).len() as i32
    }

    fn peek(&self, id: u64) -> Option<Rc<TaskStruct>> {
        self.preempt();
        let first = self.queues.borrow().get(&id)?.first().copied()?;
        Some(Rc::clone(&self.task(first.2).sched))
    }

    fn walk_new(&self, id: u64) -> usize {
        let members = self.members(id).into();
        let mut walks = self.walks.borrow_mut();
        walks.push(Some(members));
        walks.len()
    }

    fn walk_next(&self, walk: usize) -> Option<Rc<TaskStruct>> {
        self.preempt();
        let pid = self.walks.borrow_mut()[walk - 1].as_mut()?.pop_front()?;
        Some(Rc::clone(&self.task(pid).sched))
    }

    fn walk_destroy(&self, walk: usize) {
        let mut walks = self.walks.borrow_mut();
        walks[walk - 1] = None;
        while walks.last().is_some_and(Option::is_none) {
            walks.pop();
        }
    }

    /// `scx_dsq_move`: the walk's task is moved if it still waits in a queue.
    fn move_task(&self, p: &TaskStruct, id: u64, vtime: Option<u64>) -> bool {
        let (cpu, task) = (self.cpu.get(), self.task(p.pid));
        let Place::Queue { id: from, .. } = task.place.get() else { return false };
        if id == DSQ_LOCAL && !Self::may_run(task, cpu) {
            return false;
        }
        if id == DSQ_LOCAL && task.sched.cpu.get() as usize != cpu {
            let moved = self.take_remote(task, cpu);
            self.rqs[cpu].dispatched.set(moved || self.rqs[cpu].dispatched.get());
            return moved;
        }
        let other = task.sched.cpu.get() as usize;
        self.unlock(cpu);
        self.lock(other);
        let still = matches!(task.place.get(), Place::Queue { id, .. } if id == from)
            && task.sched.cpu.get() as usize == other;
        if still {
            self.unlink(task);
            match vtime {
                Some(vtime) => self.link(task, id, vtime),
                None => self.link_local(task, cpu, false),
            }
        }
        self.unlock(other);
        self.lock(cpu);
        self.rqs[cpu].dispatched.set(still || self.rqs[cpu].dispatched.get());
        still
    }

    fn test_and_clear_idle(&self, cpu: i32) -> bool {
        self.preempt();
        let idle = self.idle.get();
        self.idle.set(idle & !(1 << cpu));
        idle >> cpu & 1 == 1
    }

    fn pick_idle(&self, allowed: u64) -> i32 {
        const EBUSY: i32 = 16;
        self.preempt();
        self.pick(allowed).map_or(-EBUSY, |cpu| cpu as i32)
    }

    fn nearest_idle(&self, allowed: u64, previous: i32) -> Option<i32> {
        let near = self.near[previous as usize];
        let masks = [1 << previous, near[0], near[1], u64::MAX];
        masks.into_iter().find_map(|mask| {
            self.preempt();
            self.pick(allowed & mask).map(|cpu| cpu as i32)
        })
    }

    /// The kick itself waits until interrupts are on: `crate::kernel::Kernel::interrupts`.
    fn kick(&self, cpu: i32, flags: u64) {
        self.preempt();
        let (me, cpu) = (&self.rqs[self.cpu.get()], cpu as usize);
        if flags & KICK_IDLE == 0 {
            return me.kick_preempt.set(me.kick_preempt.get() | 1 << cpu);
        }
        if self.try_lock(cpu) {
            let skip = self.is_busy(cpu);
            self.unlock(cpu);
            if skip {
                return;
            }
        }
        me.kick_idle.set(me.kick_idle.get() | 1 << cpu);
    }

    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    fn this_cpu(&self) -> usize {
        self.cpu.get()
    }

    /// Put off until the callback has returned, as newer kernels do: `Kernel::release`.
    fn reenqueue_local(&self) -> u32 {
        let rq = &self.rqs[self.cpu.get()];
        rq.reenqueues.set(true);
        rq.local.borrow().len() as u32
    }

    fn storage(&self, p: &TaskStruct, map: MapValue) -> *mut u64 {
        self.task(p.pid).storage.value(map)
    }

    fn fail(&self, message: String) {
        State::fail(self, message);
    }
}
