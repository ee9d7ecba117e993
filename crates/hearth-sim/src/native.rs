//! The seam to the scheduler in C: loads `bpf/` as a shared object and calls it through sched_ext's
//! own interface. The only `unsafe` code of this crate.
//!
//! Each simulated machine loads a copy of its own, so machines may run side by side: an object is
//! loaded from a memory file, and each file is another object to the loader.

#![allow(unsafe_code)]

use crate::kernel::scx::Scx;
use hearth_machine::Machine;
use hearth_policy::Policy;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::io::{Error, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/hearth.so"));

/// Most CPUs that the scheduler can serve.
const MAX_CPUS: usize = 512;

/// `struct cpumask`.
#[repr(C)]
pub(crate) struct CpuMask {
    pub(crate) bits: Cell<u64>,
}

/// `struct task_struct`, as far as the scheduler may look.
#[repr(C)]
pub(crate) struct TaskStruct {
    pub(crate) pid: i32,
    pub(crate) tgid: i32,
    pub(crate) cpu: Cell<u32>,
    pub(crate) on_cpu: Cell<i32>,
    pub(crate) nr_cpus_allowed: Cell<u32>,
    cpus_ptr: *const CpuMask,
    pub(crate) flags: Cell<u32>,
    pub(crate) weight: Cell<u32>,
    pub(crate) slice: Cell<u64>,
    pub(crate) dsq_vtime: Cell<u64>,
    pub(crate) sum_exec_ns: Cell<u64>,
    comm: [u8; 16],
    allowed: CpuMask,
}

const _: () = assert!(std::mem::offset_of!(TaskStruct, allowed) == 80);

impl TaskStruct {
    pub(crate) fn new(pid: i32, cpu: usize, allowed: u64, name: &str) -> Rc<Self> {
        let mut comm = [0; 16];
        name.bytes().take(15).zip(&mut comm).for_each(|(from, to)| *to = from);
        Rc::new_cyclic(|this: &std::rc::Weak<Self>| Self {
            pid,
            tgid: pid,
            cpu: Cell::new(cpu as u32),
            on_cpu: Cell::new(0),
            nr_cpus_allowed: Cell::new(allowed.count_ones()),
            // SAFETY: only the address of a field is computed; the allocation outlives the pointer, which
            // is a field of the same allocation.
            cpus_ptr: unsafe { &raw const (*this.as_ptr()).allowed },
            flags: Cell::new(0),
            weight: Cell::new(100),
            slice: Cell::new(0),
            dsq_vtime: Cell::new(0),
            sum_exec_ns: Cell::new(0),
            comm,
            allowed: CpuMask { bits: Cell::new(allowed) },
        })
    }

    /// The task's name, as far as the kernel keeps it.
    pub(crate) fn name(&self) -> String {
        self.comm.iter().take_while(|&&byte| byte != 0).map(|&byte| char::from(byte)).collect()
    }

    /// CPUs that the task may run on, as bits.
    pub(crate) fn allowed(&self) -> u64 {
        self.allowed.bits.get()
    }

    /// `set_cpus_allowed_ptr`, of a task that is in no queue.
    pub(crate) fn allow(&self, cpus: u64) {
        self.allowed.bits.set(cpus);
        self.nr_cpus_allowed.set(cpus.count_ones());
    }
}

type Task = *const TaskStruct;

/// `struct sched_ext_ops`.
#[repr(C)]
struct Ops {
    select_cpu: extern "C" fn(Task, i32, u64) -> i32,
    enqueue: extern "C" fn(Task, u64),
    dispatch: extern "C" fn(i32, Task),
    tick: extern "C" fn(Task),
    runnable: Option<extern "C" fn(Task, u64)>,
    running: extern "C" fn(Task),
    stopping: extern "C" fn(Task, bool),
    yield_: Option<extern "C" fn(Task, Task) -> bool>,
    set_weight: extern "C" fn(Task, u32),
    update_idle: extern "C" fn(i32, bool),
    init_task: extern "C" fn(Task, *const bool) -> i32,
    enable: Option<extern "C" fn(Task)>,
    disable: Option<extern "C" fn(Task)>,
    init: extern "C" fn() -> i32,
    exit: Option<extern "C" fn(*const c_void)>,
    flags: u64,
    timeout_ms: u32,
    name: *const c_char,
}

/// `struct hearth_policy`.
#[repr(C)]
struct NativePolicy {
    quantum_ns: u64,
    tick_ns: u64,
    decay_ns: u64,
    time_ns: u64,
    processor_ns: u64,
    llc_ns: u64,
    node_ns: u64,
    fade_milli: u32,
    discipline: u32,
    flags: u32,
    pad: u32,
}

const _: () = assert!(size_of::<NativePolicy>() == 72);

/// `struct hearth_topology`.
#[repr(C)]
struct NativeTopology {
    nr_cpus: u32,
    nr_domains: u32,
    domain_of: [u32; MAX_CPUS],
    node_of: [u32; MAX_CPUS],
    member: [u32; MAX_CPUS],
    first: [u32; MAX_CPUS],
    end: [u32; MAX_CPUS],
}

const _: () = assert!(size_of::<NativeTopology>() == 8 + 20 * MAX_CPUS);

/// `struct hearth_stats`: what the dispatches of one CPU led to.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DispatchStats {
    /// The task that was running went on.
    pub kept: u64,
    /// From this CPU's queue.
    pub own: u64,
    /// From another queue of the cache domain.
    pub domain: u64,
    /// From a queue of another domain.
    pub foreign: u64,
    /// Placed on this CPU, idle, at wake-up.
    pub direct: u64,
    /// Wake-ups that preempted a task here.
    pub preempted: u64,
    /// Nothing was runnable.
    pub idle: u64,
    #[serde(skip)]
    pad: u64,
}

const _: () = assert!(size_of::<DispatchStats>() == 64);

/// `struct hearth_kernel`: the kfuncs.
#[repr(C)]
struct Kfuncs {
    this: *const Scx,
    create_dsq: extern "C" fn(&Scx, u64, i32) -> i32,
    dsq_insert: extern "C" fn(&Scx, &TaskStruct, u64, u64, u64),
    dsq_insert_vtime: extern "C" fn(&Scx, &TaskStruct, u64, u64, u64, u64),
    dsq_move_to_local: extern "C" fn(&Scx, u64) -> bool,
    dsq_nr_queued: extern "C" fn(&Scx, u64) -> i32,
    dsq_peek: extern "C" fn(&Scx, u64) -> Task,
    dsq_walk_new: extern "C" fn(&Scx, u64) -> *mut c_void,
    dsq_walk_next: extern "C" fn(&Scx, *mut c_void) -> Task,
    dsq_walk_destroy: extern "C" fn(&Scx, *mut c_void),
    dsq_move: extern "C" fn(&Scx, &TaskStruct, u64, u64) -> bool,
    dsq_move_vtime: extern "C" fn(&Scx, &TaskStruct, u64, u64, u64) -> bool,
    test_and_clear_cpu_idle: extern "C" fn(&Scx, i32) -> bool,
    pick_idle_cpu: extern "C" fn(&Scx, &CpuMask, u64) -> i32,
    select_cpu_dfl: extern "C" fn(&Scx, &TaskStruct, i32, u64, &mut bool) -> i32,
    kick_cpu: extern "C" fn(&Scx, i32, u64),
    now: extern "C" fn(&Scx) -> u64,
    smp_processor_id: extern "C" fn(&Scx) -> u32,
    task_storage: extern "C" fn(&Scx, &TaskStruct, u64) -> *mut c_void,
    error: extern "C" fn(&Scx, *const c_char),
}

extern "C" fn create_dsq(scx: &Scx, id: u64, _node: i32) -> i32 {
    scx.create_dsq(id)
}
extern "C" fn dsq_insert(scx: &Scx, p: &TaskStruct, id: u64, slice: u64, flags: u64) {
    scx.insert(p, id, slice, None, flags);
}
extern "C" fn dsq_insert_vtime(scx: &Scx, p: &TaskStruct, id: u64, slice: u64, vtime: u64, flags: u64) {
    scx.insert(p, id, slice, Some(vtime), flags);
}
extern "C" fn dsq_move_to_local(scx: &Scx, id: u64) -> bool {
    scx.move_first_to_local(id)
}
extern "C" fn dsq_nr_queued(scx: &Scx, id: u64) -> i32 {
    scx.queued(id)
}
extern "C" fn dsq_peek(scx: &Scx, id: u64) -> Task {
    scx.peek(id).map_or(std::ptr::null(), |task| Rc::as_ptr(&task))
}
extern "C" fn dsq_walk_new(scx: &Scx, id: u64) -> *mut c_void {
    scx.walk_new(id) as *mut c_void
}
extern "C" fn dsq_walk_next(scx: &Scx, walk: *mut c_void) -> Task {
    scx.walk_next(walk as usize).map_or(std::ptr::null(), |task| Rc::as_ptr(&task))
}
extern "C" fn dsq_walk_destroy(scx: &Scx, walk: *mut c_void) {
    scx.walk_destroy(walk as usize);
}
extern "C" fn dsq_move(scx: &Scx, p: &TaskStruct, id: u64, _flags: u64) -> bool {
    scx.move_task(p, id, None)
}
extern "C" fn dsq_move_vtime(scx: &Scx, p: &TaskStruct, id: u64, vtime: u64, _flags: u64) -> bool {
    scx.move_task(p, id, Some(vtime))
}
extern "C" fn test_and_clear_cpu_idle(scx: &Scx, cpu: i32) -> bool {
    scx.test_and_clear_idle(cpu)
}
extern "C" fn pick_idle_cpu(scx: &Scx, allowed: &CpuMask, _flags: u64) -> i32 {
    scx.pick_idle(allowed.bits.get())
}
extern "C" fn select_cpu_dfl(scx: &Scx, p: &TaskStruct, prev: i32, _flags: u64, is_idle: &mut bool) -> i32 {
    let idle = scx.nearest_idle(p.allowed(), prev);
    *is_idle = idle.is_some();
    idle.unwrap_or(prev)
}
extern "C" fn kick_cpu(scx: &Scx, cpu: i32, flags: u64) {
    scx.kick(cpu, flags);
}
extern "C" fn now(scx: &Scx) -> u64 {
    scx.now_ns()
}
extern "C" fn smp_processor_id(scx: &Scx) -> u32 {
    scx.this_cpu() as u32
}
extern "C" fn task_storage(scx: &Scx, p: &TaskStruct, size: u64) -> *mut c_void {
    scx.storage(p, size).cast()
}
extern "C" fn error(scx: &Scx, message: *const c_char) {
    // SAFETY: the scheduler passes a string literal.
    let message = unsafe { CStr::from_ptr(message) };
    scx.fail(message.to_string_lossy().into_owned());
}

/// A loaded copy of the scheduler.
pub(crate) struct Scheduler {
    ops: *const Ops,
    stats: *const DispatchStats,
    cpus: usize,
    // The kernel that the object calls back into, and the object: dropped last.
    _scx: Rc<Scx>,
    _library: Library,
    _file: OwnedFd,
}

impl Scheduler {
    /// Loads a copy that calls back into `scx`, and sets its policy.
    pub(crate) fn load(scx: &Rc<Scx>, policy: &Policy, machine: &Machine) -> Result<Self, Error> {
        let file = rustix::fs::memfd_create("hearth.so", rustix::fs::MemfdFlags::CLOEXEC)?;
        std::fs::File::from(file.try_clone()?).write_all(OBJECT)?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: the object has no initializers, and what is looked up below is defined in bpf/ with the
        // types mirrored here, whose sizes both sides assert. The object stays loaded while `Self` lives,
        // and so does `scx`, whose address is stable in its `Rc`.
        unsafe {
            let library = Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL).map_err(Error::other)?;
            let symbol = |name: &CStr| {
                library
                    .get::<*mut c_void>(name.to_bytes_with_nul())
                    .map_err(Error::other)
                    .map(|s| s.into_raw())
            };
            symbol(c"policy")?.cast::<NativePolicy>().write(native_policy(policy, machine));
            symbol(c"topology")?.cast::<NativeTopology>().write(native_topology(machine));
            symbol(c"hearth_kernel")?.cast::<Kfuncs>().write(kfuncs(scx));
            let ops = symbol(c"hearth_ops")?.cast::<Ops>().cast_const();
            let stats = symbol(c"stats")?.cast::<DispatchStats>().cast_const();
            let scx = Rc::clone(scx);
            Ok(Self { ops, stats, cpus: machine.cpus(), _scx: scx, _library: library, _file: file })
        }
    }

    fn ops(&self) -> &Ops {
        // SAFETY: points into the loaded object; see `load`.
        unsafe { &*self.ops }
    }

    /// What each CPU's dispatches led to so far.
    pub(crate) fn stats(&self) -> Vec<DispatchStats> {
        // SAFETY: an array of MAX_CPUS in the loaded object, which nothing writes meanwhile.
        (0..self.cpus).map(|cpu| unsafe { self.stats.add(cpu).read() }).collect()
    }

    pub(crate) fn timeout_ns(&self) -> u64 {
        u64::from(self.ops().timeout_ms) * 1_000_000
    }

    pub(crate) fn init(&self) -> i32 {
        (self.ops().init)()
    }

    pub(crate) fn init_task(&self, p: &TaskStruct, fork: bool) -> i32 {
        let code = (self.ops().init_task)(p, &fork);
        (self.ops().set_weight)(p, p.weight.get());
        if let Some(enable) = self.ops().enable {
            enable(p);
        }
        code
    }

    pub(crate) fn select_cpu(&self, p: &TaskStruct, previous: usize, flags: u64) -> i32 {
        (self.ops().select_cpu)(p, previous as i32, flags)
    }

    pub(crate) fn enqueue(&self, p: &TaskStruct, flags: u64) {
        (self.ops().enqueue)(p, flags);
    }

    pub(crate) fn dispatch(&self, cpu: usize, previous: Option<&TaskStruct>) {
        (self.ops().dispatch)(cpu as i32, previous.map_or(std::ptr::null(), |p| p));
    }

    pub(crate) fn tick(&self, p: &TaskStruct) {
        (self.ops().tick)(p);
    }

    pub(crate) fn runnable(&self, p: &TaskStruct, flags: u64) {
        if let Some(runnable) = self.ops().runnable {
            runnable(p, flags);
        }
    }

    pub(crate) fn running(&self, p: &TaskStruct) {
        (self.ops().running)(p);
    }

    pub(crate) fn stopping(&self, p: &TaskStruct, runnable: bool) {
        (self.ops().stopping)(p, runnable);
    }

    pub(crate) fn update_idle(&self, cpu: usize, idle: bool) {
        (self.ops().update_idle)(cpu as i32, idle);
    }

    pub(crate) fn yield_task(&self, p: &TaskStruct) {
        match self.ops().yield_ {
            Some(yield_) => drop(yield_(p, std::ptr::null())),
            None => p.slice.set(0),
        }
    }
}

fn native_policy(policy: &Policy, machine: &Machine) -> NativePolicy {
    NativePolicy {
        quantum_ns: policy.quantum_ns,
        tick_ns: machine.kernel.tick_ns,
        decay_ns: policy.decay_ns,
        time_ns: policy.credit.time_ns,
        processor_ns: policy.credit.processor_ns,
        llc_ns: policy.credit.llc_ns,
        node_ns: policy.credit.node_ns,
        fade_milli: policy.fade_permille,
        discipline: policy.discipline as u32,
        flags: policy.flags(),
        pad: 0,
    }
}

fn native_topology(machine: &Machine) -> NativeTopology {
    let (cpus, per_domain) = (machine.cpus(), machine.domain_cpus());
    let mut topology = NativeTopology {
        nr_cpus: cpus as u32,
        nr_domains: cpus.div_ceil(per_domain) as u32,
        domain_of: [0; MAX_CPUS],
        node_of: [0; MAX_CPUS],
        member: [0; MAX_CPUS],
        first: [0; MAX_CPUS],
        end: [0; MAX_CPUS],
    };
    for cpu in 0..cpus {
        topology.domain_of[cpu] = (cpu / per_domain) as u32;
        topology.node_of[cpu] = machine.node_of(cpu) as u32;
        topology.member[cpu] = cpu as u32;
    }
    for domain in 0..cpus.div_ceil(per_domain) {
        topology.first[domain] = (domain * per_domain) as u32;
        topology.end[domain] = ((domain + 1) * per_domain).min(cpus) as u32;
    }
    topology
}

fn kfuncs(scx: &Rc<Scx>) -> Kfuncs {
    Kfuncs {
        this: Rc::as_ptr(scx),
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
        task_storage,
        error,
    }
}
