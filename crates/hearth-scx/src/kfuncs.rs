//! sched_ext's kfuncs, with the locks that the kernel takes and lets go for them. Their kernel names are
//! in `hearth-abi`.

use crate::task::{Task, Verdict};
use crate::{Host, Scx};
use hearth_abi::native::{DSQ_BUILTIN, DSQ_LOCAL, KICK_IDLE, Kernel, MapValue, TaskStruct, WAKE_SYNC};
use hearth_machine::CpuSet;
use std::rc::Rc;

const ENOENT: i32 = 2;
const EBUSY: i32 = 16;
const EEXIST: i32 = 17;
const EINVAL: i32 = 22;

impl<H: Host> Scx<H> {
    /// Whether a number that the scheduler gives is that of a CPU, and of these.
    fn is_among(&self, cpu: i32, cpus: CpuSet) -> bool {
        usize::try_from(cpu).is_ok_and(|cpu| cpu < self.cpus() && cpus.has(cpu))
    }

    /// Of a wake-up by who is about to sleep: the task's last CPU, if it is idle and near, or the CPU of the waker,
    /// if nothing waits there while others idle (`scx_select_cpu_dfl`).
    fn beside_waker(&self, allowed: CpuSet, previous: i32) -> Option<i32> {
        let waker = self.cpu.get();
        let is_near = self.is_among(previous, self.shape.near[waker][0]);
        if is_near && self.is_among(previous, allowed) && self.test_and_clear_idle(previous) {
            return Some(previous);
        }
        self.gap();
        let is_free = self.rqs[waker].local.borrow().is_empty() && !self.idle.get().is_empty();
        (is_free && allowed.has(waker)).then_some(waker as i32)
    }

    /// `move_remote_task_to_local_dsq`: the lock of the run queue that the task leaves is held, and then
    /// that of the CPU to which it comes.
    fn come_over(&self, task: &Task, from: usize, cpu: usize) {
        task.is_migrating.set(true);
        task.set_queued(false);
        task.sched.cpu.set(cpu as u32);
        self.unlock(from);
        self.lock(cpu);
        task.set_queued(true);
        task.is_migrating.set(false);
        self.link_local(task, cpu);
    }

    /// `consume_remote_task`: the CPU's own lock is let go for that of the task's run queue, and the
    /// task may be gone by then.
    fn take_remote(&self, task: &Task, cpu: usize) -> bool {
        let from = task.cpu();
        self.unlink(task);
        task.holder.set(Some(cpu));
        self.unlock(cpu);
        self.lock(from);
        let is_ours = task.holder.get() == Some(cpu) && task.cpu() == from;
        if is_ours {
            task.holder.set(None);
            self.come_over(task, from, cpu);
        } else {
            self.unlock(from);
            self.lock(cpu);
        }
        is_ours
    }

    /// The first of a queue's tasks that a CPU may take.
    fn first_for(&self, id: u64, cpu: usize) -> Option<Rc<Task>> {
        let queues = self.queues.borrow();
        let mut tasks = queues.by_id.get(&id)?.iter().map(|pid| self.task(pid));
        tasks.find(|task| task.cpu() == cpu || (task.may_run_on(cpu) && !task.is_pinned()))
    }

    fn pick(&self, candidates: CpuSet) -> Option<usize> {
        let candidates = self.idle.get() & candidates;
        (!candidates.is_empty()).then(|| {
            let cpu = self.host.choose(candidates);
            self.set_idle(cpu, false);
            cpu
        })
    }
}

impl<H: Host> Kernel for Scx<H> {
    fn create_dsq(&self, id: u64) -> i32 {
        let mut queues = self.queues.borrow_mut();
        if id & DSQ_BUILTIN != 0 {
            return -EINVAL;
        }
        if queues.by_id.contains_key(&id) {
            return -EEXIST;
        }
        queues.by_id.insert(id, Default::default());
        0
    }

    fn insert(&self, p: &TaskStruct, id: u64, slice: u64, vtime: Option<u64>, _flags: u64) {
        let task = self.known(p);
        match self.rqs[self.cpu.get()].placing.get() {
            None => {
                let name = task.label();
                return self.error(format!("scx_bpf_dsq_insert() of {name} from a callback that may not"));
            }
            Some(pid) if pid != p.pid => {
                let name = task.label();
                return self.error(format!("scheduling for pid {pid} but trying to direct-dispatch {name}"));
            }
            Some(_) if task.verdict.get() != Verdict::None => {
                return self.error(format!("{} already direct-dispatched", task.label()));
            }
            Some(_) => {}
        }
        p.slice.set(slice.max(1));
        match vtime {
            None if id == DSQ_LOCAL => task.verdict.set(Verdict::Local),
            Some(_) if id & DSQ_BUILTIN != 0 => {
                self.error("cannot use vtime ordering for built-in DSQs".to_owned());
            }
            vtime => task.verdict.set(Verdict::Queue { id, vtime }),
        }
    }

    fn move_first_to_local(&self, id: u64) -> bool {
        let cpu = self.cpu.get();
        if self.waiting_in(id).is_none() {
            self.error(format!("invalid DSQ ID 0x{id:016x}"));
            return false;
        }
        loop {
            self.gap();
            let Some(task) = self.first_for(id, cpu) else { return false };
            if task.cpu() == cpu {
                self.unlink(&task);
                self.link_local(&task, cpu);
            } else if !self.take_remote(&task, cpu) {
                continue;
            }
            self.rqs[cpu].dispatched.set(true);
            return true;
        }
    }

    fn queued(&self, id: u64) -> i32 {
        self.waiting_in(id).map_or(-ENOENT, |waiting| waiting as i32)
    }

    fn peek(&self, id: u64) -> Option<Rc<TaskStruct>> {
        self.gap();
        let first = self.queues.borrow().by_id.get(&id)?.iter().next()?;
        Some(Rc::clone(&self.task(first).sched))
    }

    fn walk_new(&self, id: u64) -> usize {
        self.queues.borrow_mut().walk(id, self.sequence.get())
    }

    fn walk_next(&self, walk: usize) -> Option<Rc<TaskStruct>> {
        self.gap();
        loop {
            let next = self.queues.borrow_mut().walk_next(walk)?;
            let task = self.task(next);
            if self.queues.borrow().is_walked(walk, task.place.get()) {
                return Some(Rc::clone(&task.sched));
            }
        }
    }

    fn walk_destroy(&self, walk: usize) {
        self.queues.borrow_mut().walk_ends(walk);
    }

    /// `scx_dsq_move`: the task is moved if it has waited in the walk's queue since the walk began. The
    /// CPU's own lock is let go only if the task is on another run queue.
    fn move_task(&self, walk: usize, p: &TaskStruct, id: u64, vtime: Option<u64>) -> bool {
        let (cpu, task) = (self.cpu.get(), self.known(p));
        let from = task.cpu();
        let mut locked = from;
        if from == cpu {
            self.gap();
        } else {
            self.unlock(cpu);
            self.lock(from);
        }
        let is_moved = task.cpu() == from && self.queues.borrow().is_walked(walk, task.place.get());
        if is_moved && id == DSQ_LOCAL && from != cpu && task.is_pinned() {
            let name = task.label();
            self.error(format!(
                "SCX_DSQ_LOCAL cannot move migration disabled {name} from CPU {from} to {cpu}"
            ));
        } else if is_moved && id == DSQ_LOCAL && !task.may_run_on(cpu) {
            self.error(format!("SCX_DSQ_LOCAL target CPU {cpu} not allowed for {}", task.label()));
        } else if is_moved {
            self.unlink(&task);
            if id != DSQ_LOCAL {
                self.link(&task, id, vtime);
            } else if from == cpu {
                self.link_local(&task, cpu);
            } else {
                self.come_over(&task, from, cpu);
                locked = cpu;
            }
        }
        if locked != cpu {
            self.unlock(locked);
            self.lock(cpu);
        }
        self.rqs[cpu].dispatched.set(is_moved || self.rqs[cpu].dispatched.get());
        is_moved
    }

    fn test_and_clear_idle(&self, cpu: i32) -> bool {
        self.gap();
        let was_idle = self.is_among(cpu, self.idle.get());
        if was_idle {
            self.set_idle(cpu as usize, false);
        }
        was_idle
    }

    fn pick_idle(&self, allowed: CpuSet) -> i32 {
        self.gap();
        self.pick(allowed).map_or(-EBUSY, |cpu| cpu as i32)
    }

    fn nearest_idle(&self, allowed: CpuSet, previous: i32, wake_flags: u64) -> Option<i32> {
        let near = self.shape.near.get(usize::try_from(previous).ok()?)?;
        if wake_flags & WAKE_SYNC != 0
            && let Some(cpu) = self.beside_waker(allowed, previous)
        {
            return Some(cpu);
        }
        if self.is_among(previous, allowed) && self.test_and_clear_idle(previous) {
            return Some(previous);
        }
        [near[0], near[1], CpuSet::ALL].into_iter().find_map(|mask| {
            self.gap();
            self.pick(allowed & mask).map(|cpu| cpu as i32)
        })
    }

    /// The kick itself waits until interrupts are on: `crate::Kernel::kicks`.
    fn kick(&self, cpu: i32, flags: u64) {
        self.gap();
        let Some(cpu) = usize::try_from(cpu).ok().filter(|&cpu| cpu < self.cpus()) else {
            return self.error(format!("invalid CPU {cpu} from ops.kick_cpu"));
        };
        let me = &self.rqs[self.cpu.get()];
        if flags & KICK_IDLE == 0 {
            return me.kick_preempt.set(me.kick_preempt.get().with(cpu));
        }
        if self.try_lock(cpu) {
            let skip = self.is_busy(cpu);
            self.unlock(cpu);
            if skip {
                return;
            }
        }
        me.kick_idle.set(me.kick_idle.get().with(cpu));
    }

    fn now_ns(&self) -> u64 {
        self.now_ps() / 1000
    }

    fn this_cpu(&self) -> usize {
        self.cpu.get()
    }

    /// Put off until the callback has returned, as newer kernels do.
    fn reenqueue_local(&self) -> u32 {
        let rq = &self.rqs[self.cpu.get()];
        rq.reenqueues.set(true);
        rq.local.borrow().len() as u32
    }

    fn storage(&self, p: &TaskStruct, map: MapValue) -> *mut u64 {
        self.known(p).storage.value(map)
    }

    fn fail(&self, message: String) {
        self.error(message);
    }
}
