//! sched_ext as the scheduler sees it: dispatch queues, idle CPUs, kicks, task storage.
//!
//! The kfuncs under their kernel names are in `hearth-native` and end here. What the kernel refuses is
//! refused here with the kernel's own words, and ends the run.

use hearth_native::{DSQ_BUILTIN, DSQ_LOCAL, Kernel, MapValue, TaskStorage, TaskStruct};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// Which callback the scheduler is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callback {
    /// One that may not move tasks.
    Other,
    /// `select_cpu` or `enqueue`, for this task.
    Placing {
        pid: i32,
    },
    Dispatch,
}

/// Where a waiting task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    /// Chosen in `select_cpu`: goes to the local queue of the CPU that it returns.
    Direct,
    Local(usize),
    Queue {
        id: u64,
        key: u64,
        sequence: u64,
    },
}

#[derive(Default)]
struct Queue {
    fifo: VecDeque<i32>,
    by_vtime: BTreeSet<(u64, u64, i32)>,
}

struct Slot {
    task: Rc<TaskStruct>,
    place: Cell<Place>,
    storage: TaskStorage,
}

/// The state that kfuncs touch. Everything is in cells: callbacks call back.
pub(crate) struct Scx {
    tasks: RefCell<Vec<Option<Rc<Slot>>>>,
    queues: RefCell<BTreeMap<u64, Queue>>,
    local: RefCell<Vec<VecDeque<i32>>>,
    walks: RefCell<Vec<VecDeque<i32>>>,
    /// For each CPU: its cache domain and its node, as bits.
    near: Vec<[u64; 2]>,
    idle: Cell<u64>,
    rotor: Cell<usize>,
    kicks: RefCell<Vec<(usize, u64)>>,
    sequence: Cell<u64>,
    callback: Cell<Callback>,
    cpu: Cell<usize>,
    now_ps: Cell<u64>,
    error: RefCell<Option<String>>,
}

impl Scx {
    /// `near`: for each CPU, the CPUs of its cache domain and those of its node, as bits.
    pub(crate) fn new(near: Vec<[u64; 2]>) -> Self {
        let cpus = near.len();
        Self {
            near,
            tasks: RefCell::default(),
            queues: RefCell::default(),
            local: RefCell::new(vec![VecDeque::new(); cpus]),
            walks: RefCell::default(),
            idle: Cell::new(if cpus == 64 { u64::MAX } else { (1 << cpus) - 1 }),
            rotor: Cell::new(0),
            kicks: RefCell::default(),
            sequence: Cell::new(0),
            callback: Cell::new(Callback::Other),
            cpu: Cell::new(0),
            now_ps: Cell::new(0),
            error: RefCell::default(),
        }
    }

    // ---- for the kernel ----

    /// The scheduler is about to be called on a CPU.
    pub(crate) fn enter(&self, cpu: usize, now_ps: u64, callback: Callback) {
        self.cpu.set(cpu);
        self.now_ps.set(now_ps);
        self.callback.set(callback);
    }

    pub(crate) fn add_task(&self, task: &Rc<TaskStruct>) {
        let slot =
            Slot { task: Rc::clone(task), place: Cell::new(Place::Nowhere), storage: TaskStorage::default() };
        let mut tasks = self.tasks.borrow_mut();
        let index = task.pid as usize;
        if tasks.len() <= index {
            tasks.resize_with(index + 1, || None);
        }
        tasks[index] = Some(Rc::new(slot));
    }

    pub(crate) fn remove_task(&self, pid: i32) {
        self.tasks.borrow_mut()[pid as usize] = None;
    }

    /// What the scheduler did that the kernel does not allow.
    pub(crate) fn error(&self) -> Option<String> {
        self.error.borrow().clone()
    }

    /// CPUs kicked since the last call, with the flags.
    pub(crate) fn take_kicks(&self) -> Vec<(usize, u64)> {
        std::mem::take(&mut self.kicks.borrow_mut())
    }

    pub(crate) fn set_idle(&self, cpu: usize, idle: bool) {
        let bit = 1 << cpu;
        self.idle.set(if idle { self.idle.get() | bit } else { self.idle.get() & !bit });
    }

    /// After `select_cpu`: whether the task was placed, and if so it joins the CPU's local queue.
    pub(crate) fn finish_direct(&self, pid: i32, cpu: usize) -> bool {
        let Some(slot) = self.slot(pid) else { return false };
        let direct = slot.place.get() == Place::Direct;
        if direct {
            self.local.borrow_mut()[cpu].push_back(pid);
            slot.place.set(Place::Local(cpu));
        }
        direct
    }

    /// Puts a task at the head of a CPU's local queue: it was switched out with time left.
    pub(crate) fn push_local_front(&self, pid: i32, cpu: usize) {
        if let Some(slot) = self.slot(pid) {
            self.local.borrow_mut()[cpu].push_front(pid);
            slot.place.set(Place::Local(cpu));
        }
    }

    pub(crate) fn pop_local(&self, cpu: usize) -> Option<i32> {
        let pid = self.local.borrow_mut()[cpu].pop_front()?;
        if let Some(slot) = self.slot(pid) {
            slot.place.set(Place::Nowhere);
        }
        Some(pid)
    }

    pub(crate) fn has_local(&self, cpu: usize) -> bool {
        !self.local.borrow()[cpu].is_empty()
    }

    /// Whether any task waits in a queue that this CPU could take it from.
    pub(crate) fn is_waiting(&self, pid: i32) -> bool {
        self.slot(pid).is_some_and(|slot| slot.place.get() != Place::Nowhere)
    }

    fn insert_into(&self, slot: &Slot, id: u64, vtime: Option<u64>) {
        let p = &slot.task;
        let mut queues = self.queues.borrow_mut();
        let Some(queue) = queues.get_mut(&id) else {
            return self.fail(format!("non-existent DSQ 0x{id:x} for {}[{}]", p.name(), p.pid));
        };
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        match vtime {
            Some(_) if !queue.fifo.is_empty() => {
                return self.fail(format!("DSQ ID 0x{id:016x} already had FIFO-enqueued tasks"));
            }
            None if !queue.by_vtime.is_empty() => {
                return self.fail(format!("DSQ ID 0x{id:016x} already had PRIQ-enqueued tasks"));
            }
            Some(vtime) => {
                p.dsq_vtime.set(vtime);
                queue.by_vtime.insert((vtime, sequence, p.pid));
            }
            None => queue.fifo.push_back(p.pid),
        }
        slot.place.set(Place::Queue { id, key: vtime.unwrap_or_default(), sequence });
    }

    fn unlink(&self, slot: &Slot) -> Option<u64> {
        let Place::Queue { id, key, sequence } = slot.place.get() else { return None };
        let mut queues = self.queues.borrow_mut();
        let queue = queues.get_mut(&id)?;
        queue.by_vtime.remove(&(key, sequence, slot.task.pid));
        queue.fifo.retain(|&pid| pid != slot.task.pid);
        slot.place.set(Place::Nowhere);
        Some(id)
    }

    fn to_local(&self, slot: &Slot, cpu: usize) {
        slot.task.cpu.set(cpu as u32);
        self.local.borrow_mut()[cpu].push_back(slot.task.pid);
        slot.place.set(Place::Local(cpu));
    }

    fn members(&self, id: u64) -> VecDeque<i32> {
        let queues = self.queues.borrow();
        let Some(queue) = queues.get(&id) else { return VecDeque::new() };
        queue.fifo.iter().copied().chain(queue.by_vtime.iter().map(|&(_, _, pid)| pid)).collect()
    }

    fn pick_idle_in(&self, allowed: u64) -> Option<usize> {
        let candidates = self.idle.get() & allowed;
        if candidates == 0 {
            return None;
        }
        let turn = self.rotor.get();
        let cpu = (candidates.rotate_right(turn as u32).trailing_zeros() as usize + turn) % 64;
        self.rotor.set((cpu + 1) % 64);
        self.idle.set(self.idle.get() & !(1 << cpu));
        Some(cpu)
    }

    fn slot(&self, pid: i32) -> Option<Rc<Slot>> {
        self.tasks.borrow().get(pid as usize)?.clone()
    }
}

impl Kernel for Scx {
    fn now_ns(&self) -> u64 {
        self.now_ps.get() / 1000
    }

    fn this_cpu(&self) -> usize {
        self.cpu.get()
    }

    fn fail(&self, message: String) {
        self.error.borrow_mut().get_or_insert(message);
    }

    fn create_dsq(&self, id: u64) -> i32 {
        const EINVAL: i32 = 22;
        const EEXIST: i32 = 17;
        if id & DSQ_BUILTIN != 0 {
            return -EINVAL;
        }
        if self.queues.borrow().contains_key(&id) {
            return -EEXIST;
        }
        self.queues.borrow_mut().insert(id, Queue::default());
        0
    }

    fn queued(&self, id: u64) -> i32 {
        const ENOENT: i32 = 2;
        match self.queues.borrow().get(&id) {
            Some(queue) => (queue.fifo.len() + queue.by_vtime.len()) as i32,
            None => -ENOENT,
        }
    }

    fn insert(&self, p: &TaskStruct, id: u64, slice: u64, vtime: Option<u64>, _flags: u64) {
        let Some(slot) = self.slot(p.pid) else { return };
        let name = || format!("{}[{}]", p.name(), p.pid);
        match self.callback.get() {
            Callback::Placing { pid } if pid != p.pid => {
                return self
                    .fail(format!("scheduling for pid {pid} but trying to direct-dispatch {}", name()));
            }
            Callback::Other => {
                return self.fail(format!("scx_bpf_dsq_insert() of {} from a callback that may not", name()));
            }
            _ => {}
        }
        if slot.place.get() != Place::Nowhere {
            return self.fail(format!("{} already direct-dispatched", name()));
        }
        p.slice.set(slice.max(1));
        if id == DSQ_LOCAL {
            match self.callback.get() {
                Callback::Placing { .. } => slot.place.set(Place::Direct),
                _ => {
                    self.local.borrow_mut()[self.cpu.get()].push_back(p.pid);
                    slot.place.set(Place::Local(self.cpu.get()));
                }
            }
            return;
        }
        self.insert_into(&slot, id, vtime);
    }

    fn move_first_to_local(&self, id: u64) -> bool {
        let cpu = self.cpu.get();
        let candidates = self.members(id);
        if !self.queues.borrow().contains_key(&id) {
            self.fail(format!("invalid DSQ ID 0x{id:016x}"));
            return false;
        }
        let slots = candidates.into_iter().filter_map(|pid| self.slot(pid));
        match slots.into_iter().find(|slot| slot.task.allowed() >> cpu & 1 == 1) {
            Some(slot) => {
                self.unlink(&slot);
                self.to_local(&slot, cpu);
                true
            }
            None => false,
        }
    }

    fn peek(&self, id: u64) -> Option<Rc<TaskStruct>> {
        let queues = self.queues.borrow();
        let queue = queues.get(&id)?;
        let first = queue.fifo.front().copied().or_else(|| queue.by_vtime.first().map(|&(_, _, pid)| pid));
        self.slot(first?).map(|slot| Rc::clone(&slot.task))
    }

    fn walk_new(&self, id: u64) -> usize {
        let mut walks = self.walks.borrow_mut();
        walks.push(self.members(id));
        walks.len()
    }

    fn walk_next(&self, walk: usize) -> Option<Rc<TaskStruct>> {
        let pid = self.walks.borrow_mut()[walk - 1].pop_front()?;
        self.slot(pid).map(|slot| Rc::clone(&slot.task))
    }

    fn walk_destroy(&self, walk: usize) {
        self.walks.borrow_mut().truncate(walk - 1);
    }

    fn move_task(&self, p: &TaskStruct, id: u64, vtime: Option<u64>) -> bool {
        let Some(slot) = self.slot(p.pid) else { return false };
        if self.unlink(&slot).is_none() {
            return false;
        }
        if id == DSQ_LOCAL {
            self.to_local(&slot, self.cpu.get());
        } else {
            self.insert_into(&slot, id, vtime);
        }
        true
    }

    fn test_and_clear_idle(&self, cpu: i32) -> bool {
        let bit = 1u64.checked_shl(cpu as u32).unwrap_or(0);
        let was = self.idle.get() & bit != 0;
        self.idle.set(self.idle.get() & !bit);
        was
    }

    fn pick_idle(&self, allowed: u64) -> i32 {
        const EBUSY: i32 = 16;
        self.pick_idle_in(allowed).map_or(-EBUSY, |cpu| cpu as i32)
    }

    fn nearest_idle(&self, allowed: u64, cpu: i32) -> Option<i32> {
        let near = self.near.get(usize::try_from(cpu).ok()?)?;
        if allowed >> cpu & 1 == 1 && self.test_and_clear_idle(cpu) {
            return Some(cpu);
        }
        let masks = near.iter().copied().chain([u64::MAX]);
        masks.into_iter().find_map(|mask| self.pick_idle_in(allowed & mask)).map(|cpu| cpu as i32)
    }

    fn kick(&self, cpu: i32, flags: u64) {
        if cpu < 0 || cpu as usize >= self.local.borrow().len() {
            return self.fail(format!("invalid CPU {cpu} from ops.kick_cpu"));
        }
        self.kicks.borrow_mut().push((cpu as usize, flags));
    }

    /// No higher class takes a CPU here.
    fn reenqueue_local(&self) -> u32 {
        0
    }

    fn storage(&self, p: &TaskStruct, map: MapValue) -> *mut u64 {
        self.slot(p.pid).map_or(std::ptr::null_mut(), |slot| slot.storage.value(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scx_with_tasks(tasks: i32) -> (Scx, Vec<Rc<TaskStruct>>) {
        let scx = Scx::new(vec![[0b1111; 2]; 4]);
        let tasks: Vec<_> = (0..tasks).map(|pid| Rc::new(TaskStruct::new(pid, 0, 0b1111, "test"))).collect();
        tasks.iter().for_each(|task| scx.add_task(task));
        (scx, tasks)
    }

    fn placing(scx: &Scx, p: &TaskStruct, id: u64, vtime: Option<u64>) {
        scx.enter(0, 0, Callback::Placing { pid: p.pid });
        scx.insert(p, id, 1000, vtime, 0);
    }

    #[test]
    fn a_queue_is_served_by_vtime_and_first_come_among_equals() {
        let (scx, tasks) = scx_with_tasks(4);
        scx.create_dsq(7);
        for (task, vtime) in tasks.iter().zip([5, 3, 5, 3]) {
            placing(&scx, task, 7, Some(vtime));
        }
        scx.enter(2, 0, Callback::Dispatch);
        while scx.move_first_to_local(7) {}
        let order: Vec<i32> = std::iter::from_fn(|| scx.pop_local(2)).collect();
        assert_eq!(order, [1, 3, 0, 2]);
    }

    #[test]
    fn an_insert_into_a_queue_that_does_not_exist_ends_the_run() {
        let (scx, tasks) = scx_with_tasks(1);
        placing(&scx, &tasks[0], 9, None);
        assert_eq!(scx.error().as_deref(), Some("non-existent DSQ 0x9 for test[0]"));
    }

    #[test]
    fn an_insert_of_the_same_task_twice_ends_the_run() {
        let (scx, tasks) = scx_with_tasks(1);
        scx.create_dsq(1);
        placing(&scx, &tasks[0], 1, None);
        assert_eq!(scx.error(), None);
        placing(&scx, &tasks[0], 1, None);
        assert_eq!(scx.error().as_deref(), Some("test[0] already direct-dispatched"));
    }

    #[test]
    fn a_queue_may_not_mix_fifo_and_vtime() {
        let (scx, tasks) = scx_with_tasks(2);
        scx.create_dsq(1);
        placing(&scx, &tasks[0], 1, None);
        placing(&scx, &tasks[1], 1, Some(3));
        assert!(scx.error().is_some_and(|error| error.contains("FIFO")));
    }

    #[test]
    fn idle_cpus_are_picked_in_turn_and_only_once() {
        let (scx, _) = scx_with_tasks(0);
        let picked: Vec<i32> = (0..5).map(|_| scx.pick_idle(0b1111)).collect();
        assert_eq!(picked[..4], [0, 1, 2, 3]);
        assert!(picked[4] < 0);
        scx.set_idle(1, true);
        scx.set_idle(3, true);
        assert_eq!(scx.pick_idle(0b1111), 1);
    }

    #[test]
    fn a_walk_sees_the_tasks_that_were_there_when_it_began() {
        let (scx, tasks) = scx_with_tasks(3);
        scx.create_dsq(1);
        tasks.iter().for_each(|task| placing(&scx, task, 1, Some(task.pid as u64)));
        let walk = scx.walk_new(1);
        let mut seen = Vec::new();
        while let Some(task) = scx.walk_next(walk) {
            scx.move_task(&task, 1, Some(10 - task.pid as u64));
            seen.push(task.pid);
        }
        scx.walk_destroy(walk);
        assert_eq!(seen, [0, 1, 2]);
        assert_eq!(scx.members(1), [2, 1, 0]);
    }
}
