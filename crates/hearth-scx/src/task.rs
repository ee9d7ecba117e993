//! A task, as sched_ext's side of the kernel knows it.

use hearth_abi::native::{TASK_QUEUED, TaskStorage, TaskStruct};
use hearth_machine::CpuSet;
use std::cell::Cell;
use std::rc::Rc;

/// A task, by its number, from 1 in the order in which they were added.
pub type Pid = i32;

/// Where a runnable task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It runs, or is on its way.
    Nowhere,
    /// The local queue of a CPU.
    Local(usize),
    /// A dispatch queue, and where in it.
    Queue { id: u64, key: (u64, u64) },
}

/// Where `select_cpu` or `enqueue` has inserted a task; carried out when the callback has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    None,
    Local,
    Queue { id: u64, vtime: Option<u64> },
}

/// `struct task_struct`, with what of it the scheduler does not see.
pub struct Task {
    /// What the scheduler sees.
    pub sched: Rc<TaskStruct>,
    pub(crate) pi_locked: Cell<bool>,
    /// It has not asked to sleep, or was woken.
    pub(crate) is_runnable: Cell<bool>,
    pub(crate) on_rq: Cell<bool>,
    /// Between two run queues.
    pub(crate) is_migrating: Cell<bool>,
    pub(crate) place: Cell<Place>,
    pub(crate) verdict: Cell<Verdict>,
    /// `scx.holding_cpu`: the CPU that is about to take it.
    pub(crate) holder: Cell<Option<usize>>,
    /// `SCX_TASK_IMMED`: where it waits to run it may not wait for others.
    pub(crate) is_immediate: Cell<bool>,
    pub(crate) waits_since_ps: Cell<u64>,
    /// How long it has waited for a CPU, up to when it ran last.
    pub(crate) waited_ps: Cell<u64>,
    /// Its mask without `migrate_disable`, if that has made it narrower; else none.
    pub(crate) wide_mask: Cell<CpuSet>,
    /// It is in another scheduling class.
    pub(crate) is_away: Cell<bool>,
    /// It has ended.
    pub(crate) is_dead: Cell<bool>,
    pub(crate) storage: TaskStorage,
}

impl Task {
    pub(crate) fn new(sched: &Rc<TaskStruct>) -> Self {
        Self {
            sched: Rc::clone(sched),
            pi_locked: Cell::new(false),
            is_runnable: Cell::new(false),
            on_rq: Cell::new(false),
            is_migrating: Cell::new(false),
            place: Cell::new(Place::Nowhere),
            verdict: Cell::new(Verdict::None),
            holder: Cell::new(None),
            is_immediate: Cell::new(false),
            waits_since_ps: Cell::new(0),
            waited_ps: Cell::new(0),
            wide_mask: Cell::default(),
            is_away: Cell::new(false),
            is_dead: Cell::new(false),
            storage: TaskStorage::default(),
        }
    }

    /// Its number.
    pub fn pid(&self) -> Pid {
        self.sched.pid
    }

    /// The CPU whose run queue it is on, or was on last.
    pub fn cpu(&self) -> usize {
        self.sched.cpu.get() as usize
    }

    /// Its name and number, as in the kernel's messages.
    pub fn label(&self) -> String {
        format!("{}[{}]", self.sched.name(), self.sched.pid)
    }

    /// Whether its mask has a CPU.
    pub fn may_run_on(&self, cpu: usize) -> bool {
        self.sched.allowed().has(cpu)
    }

    /// `is_migration_disabled`: it may run only where it is, which its mask may not say yet.
    pub fn is_pinned(&self) -> bool {
        self.sched.migration_disabled.get() > 0
    }

    /// Since when it is runnable and does not run, in ps; `None` if it runs or sleeps.
    pub fn waits_since_ps(&self) -> Option<u64> {
        (self.on_rq.get() && self.sched.on_cpu.get() == 0).then(|| self.waits_since_ps.get())
    }

    /// `sched_info.run_delay`: time that it has waited for a CPU, in ps. A wait counts when it is over.
    pub fn waited_ps(&self) -> u64 {
        self.waited_ps.get()
    }

    /// Whether it is in a queue.
    pub fn is_in_queue(&self) -> bool {
        self.place.get() != Place::Nowhere
    }

    /// Whether it is in one of the scheduler's queues, and not in that of a CPU which will run it.
    pub fn is_in_dispatch_queue(&self) -> bool {
        matches!(self.place.get(), Place::Queue { .. })
    }

    /// Whether it is in another scheduling class.
    pub fn is_away(&self) -> bool {
        self.is_away.get()
    }

    pub(crate) fn is_queued(&self) -> bool {
        self.sched.flags.get() & TASK_QUEUED != 0
    }

    pub(crate) fn set_queued(&self, queued: bool) {
        let flags = self.sched.flags.get();
        self.sched.flags.set(if queued { flags | TASK_QUEUED } else { flags & !TASK_QUEUED });
    }
}
