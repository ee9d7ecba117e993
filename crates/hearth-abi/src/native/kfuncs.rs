//! sched_ext's kfuncs under their kernel names, each one call into the kernel that hosts the
//! scheduler.

#![allow(unsafe_code)]

use super::storage::MapValue;
use crate::{CpuMask, Kfuncs, STORAGE_CREATE, TaskPointer, TaskStruct};
use hearth_machine::CpuSet;
use std::ffi::{CStr, c_char, c_void};
use std::rc::Rc;

/// What a kernel does when the scheduler calls it, from within a callback.
pub trait Kernel: 'static {
    /// `scx_bpf_create_dsq`: 0, or an error's negative number.
    fn create_dsq(&self, id: u64) -> i32;
    /// `scx_bpf_dsq_insert`, and `scx_bpf_dsq_insert_vtime` with a `vtime`.
    fn insert(&self, p: &TaskStruct, id: u64, slice: u64, vtime: Option<u64>, flags: u64);
    /// `scx_bpf_dsq_move_to_local`.
    fn move_first_to_local(&self, id: u64) -> bool;
    /// `scx_bpf_dsq_nr_queued`.
    fn queued(&self, id: u64) -> i32;
    /// `scx_bpf_dsq_peek`. The kernel keeps the task for as long as the callback runs.
    fn peek(&self, id: u64) -> Option<Rc<TaskStruct>>;
    /// `bpf_iter_scx_dsq_new`: the walk's number, never 0.
    fn walk_new(&self, id: u64) -> usize;
    /// `bpf_iter_scx_dsq_next`. The kernel keeps the task for as long as the callback runs.
    fn walk_next(&self, walk: usize) -> Option<Rc<TaskStruct>>;
    /// `bpf_iter_scx_dsq_destroy`.
    fn walk_destroy(&self, walk: usize);
    /// `scx_bpf_dsq_move`, and `scx_bpf_dsq_move_vtime` with a `vtime`: of a task that a walk is at.
    fn move_task(&self, walk: usize, p: &TaskStruct, id: u64, vtime: Option<u64>) -> bool;
    /// `scx_bpf_test_and_clear_cpu_idle`.
    fn test_and_clear_idle(&self, cpu: i32) -> bool;
    /// `scx_bpf_pick_idle_cpu`, of the CPUs in `allowed`.
    fn pick_idle(&self, allowed: CpuSet) -> i32;
    /// `scx_bpf_select_cpu_dfl`: an idle CPU, if there is one; for a [`WAKE_SYNC`](super::WAKE_SYNC) perhaps the
    /// CPU that makes the wake-up.
    fn nearest_idle(&self, allowed: CpuSet, previous: i32, wake_flags: u64) -> Option<i32>;
    /// `scx_bpf_kick_cpu`.
    fn kick(&self, cpu: i32, flags: u64);
    /// `scx_bpf_now`.
    fn now_ns(&self) -> u64;
    /// `bpf_get_smp_processor_id`.
    fn this_cpu(&self) -> usize;
    /// `scx_bpf_reenqueue_local`, of this CPU: how many tasks were enqueued anew.
    fn reenqueue_local(&self) -> u32;
    /// `bpf_task_storage_get`; null of a task that has no storage in this map, unless it is to be made.
    fn storage(&self, p: &TaskStruct, map: MapValue) -> *mut u64;
    /// `scx_bpf_error`.
    fn fail(&self, message: String);
}

extern "C" fn create_dsq<K: Kernel>(kernel: &K, id: u64, _node: i32) -> i32 {
    kernel.create_dsq(id)
}
extern "C" fn dsq_insert<K: Kernel>(kernel: &K, p: &TaskStruct, id: u64, slice: u64, flags: u64) {
    kernel.insert(p, id, slice, None, flags);
}
extern "C" fn dsq_insert_vtime<K: Kernel>(
    kernel: &K,
    p: &TaskStruct,
    id: u64,
    slice: u64,
    vtime: u64,
    flags: u64,
) {
    kernel.insert(p, id, slice, Some(vtime), flags);
}
extern "C" fn dsq_move_to_local<K: Kernel>(kernel: &K, id: u64) -> bool {
    kernel.move_first_to_local(id)
}
extern "C" fn dsq_nr_queued<K: Kernel>(kernel: &K, id: u64) -> i32 {
    kernel.queued(id)
}
extern "C" fn dsq_peek<K: Kernel>(kernel: &K, id: u64) -> TaskPointer {
    kernel.peek(id).map_or(std::ptr::null_mut(), |task| Rc::as_ptr(&task).cast_mut())
}
extern "C" fn dsq_walk_new<K: Kernel>(kernel: &K, id: u64) -> *mut c_void {
    kernel.walk_new(id) as *mut c_void
}
extern "C" fn dsq_walk_next<K: Kernel>(kernel: &K, walk: *mut c_void) -> TaskPointer {
    kernel.walk_next(walk as usize).map_or(std::ptr::null_mut(), |task| Rc::as_ptr(&task).cast_mut())
}
extern "C" fn dsq_walk_destroy<K: Kernel>(kernel: &K, walk: *mut c_void) {
    kernel.walk_destroy(walk as usize);
}
extern "C" fn dsq_move<K: Kernel>(
    kernel: &K,
    walk: *mut c_void,
    p: &TaskStruct,
    id: u64,
    _flags: u64,
) -> bool {
    kernel.move_task(walk as usize, p, id, None)
}
extern "C" fn dsq_move_vtime<K: Kernel>(
    kernel: &K,
    walk: *mut c_void,
    p: &TaskStruct,
    id: u64,
    vtime: u64,
    _flags: u64,
) -> bool {
    kernel.move_task(walk as usize, p, id, Some(vtime))
}
extern "C" fn test_and_clear_cpu_idle<K: Kernel>(kernel: &K, cpu: i32) -> bool {
    kernel.test_and_clear_idle(cpu)
}
extern "C" fn pick_idle_cpu<K: Kernel>(kernel: &K, allowed: &CpuMask, _flags: u64) -> i32 {
    kernel.pick_idle(allowed.set())
}
extern "C" fn select_cpu_dfl<K: Kernel>(
    kernel: &K,
    p: &TaskStruct,
    prev: i32,
    wake_flags: u64,
    is_idle: &mut bool,
) -> i32 {
    let idle = kernel.nearest_idle(p.allowed(), prev, wake_flags);
    *is_idle = idle.is_some();
    idle.unwrap_or(prev)
}
extern "C" fn kick_cpu<K: Kernel>(kernel: &K, cpu: i32, flags: u64) {
    kernel.kick(cpu, flags);
}
extern "C" fn now<K: Kernel>(kernel: &K) -> u64 {
    kernel.now_ns()
}
extern "C" fn smp_processor_id<K: Kernel>(kernel: &K) -> u32 {
    kernel.this_cpu() as u32
}
extern "C" fn reenqueue_local<K: Kernel>(kernel: &K) -> u32 {
    kernel.reenqueue_local()
}
extern "C" fn task_storage<K: Kernel>(
    kernel: &K,
    p: &TaskStruct,
    map: *const c_void,
    size: u64,
    flags: u64,
) -> *mut c_void {
    let map = MapValue { map: map.addr(), size, create: flags & STORAGE_CREATE != 0 };
    kernel.storage(p, map).cast()
}
extern "C" fn error<K: Kernel>(kernel: &K, message: *const c_char) {
    // SAFETY: the scheduler passes a string literal.
    let message = unsafe { CStr::from_ptr(message) };
    kernel.fail(message.to_string_lossy().into_owned());
}

pub(crate) fn kfuncs<K: Kernel>(kernel: &Rc<K>) -> Kfuncs<K> {
    Kfuncs {
        this: Rc::as_ptr(kernel),
        create_dsq,
        dsq_insert,
        dsq_insert_vtime,
        dsq_move_to_local,
        dsq_nr_queued,
        dsq_peek,
        dsq_walk_new,
        dsq_walk_next,
        dsq_walk_destroy,
        dsq_move,
        dsq_move_vtime,
        test_and_clear_cpu_idle,
        pick_idle_cpu,
        select_cpu_dfl,
        kick_cpu,
        now,
        smp_processor_id,
        reenqueue_local,
        task_storage,
        error,
    }
}
