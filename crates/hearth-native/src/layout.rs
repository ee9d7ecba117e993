//! The structures that the scheduler and its kernel share, as C lays them out.

#![allow(unsafe_code)]

use hearth_machine::Machine;
use hearth_policy::Policy;
use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::rc::Rc;

/// Most CPUs that the scheduler can serve.
pub const MAX_CPUS: usize = 512;

/// `struct cpumask`.
#[repr(C)]
pub struct CpuMask {
    /// CPU n is bit n.
    pub bits: Cell<u64>,
}

/// `struct task_struct`, as far as the scheduler may look.
#[repr(C)]
pub struct TaskStruct {
    /// Its number.
    pub pid: i32,
    /// The number of its process.
    pub tgid: i32,
    /// `task_cpu`.
    pub cpu: Cell<u32>,
    /// Whether it runs.
    pub on_cpu: Cell<i32>,
    /// CPUs in its mask.
    pub nr_cpus_allowed: Cell<u32>,
    cpus_ptr: *const CpuMask,
    /// `scx.flags`.
    pub flags: Cell<u32>,
    /// `scx.weight`: 100 at nice 0.
    pub weight: Cell<u32>,
    /// `scx.slice` in ns.
    pub slice: Cell<u64>,
    /// `scx.dsq_vtime`.
    pub dsq_vtime: Cell<u64>,
    /// `scx.runnable_at`: when it became runnable, in ticks.
    pub runnable_at: Cell<u64>,
    /// `se.sum_exec_runtime`.
    pub sum_exec_ns: Cell<u64>,
    comm: [u8; 16],
    allowed: CpuMask,
}

const _: () = assert!(std::mem::offset_of!(TaskStruct, allowed) == 88);

impl TaskStruct {
    /// A task that may run on the CPUs in `allowed`, as bits.
    pub fn new(pid: i32, cpu: usize, allowed: u64, name: &str) -> Rc<Self> {
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
            runnable_at: Cell::new(0),
            sum_exec_ns: Cell::new(0),
            comm,
            allowed: CpuMask { bits: Cell::new(allowed) },
        })
    }

    /// The task's name, as far as the kernel keeps it.
    pub fn name(&self) -> String {
        self.comm.iter().take_while(|&&byte| byte != 0).map(|&byte| char::from(byte)).collect()
    }

    /// CPUs that the task may run on, as bits.
    pub fn allowed(&self) -> u64 {
        self.allowed.bits.get()
    }

    /// `set_cpus_allowed_ptr`, of a task that is in no queue.
    pub fn allow(&self, cpus: u64) {
        self.allowed.bits.set(cpus);
        self.nr_cpus_allowed.set(cpus.count_ones());
    }
}

pub(crate) type Task = *const TaskStruct;

/// `struct sched_ext_ops`.
#[repr(C)]
pub(crate) struct Ops {
    pub(crate) select_cpu: extern "C" fn(Task, i32, u64) -> i32,
    pub(crate) enqueue: extern "C" fn(Task, u64),
    pub(crate) dispatch: extern "C" fn(i32, Task),
    pub(crate) tick: extern "C" fn(Task),
    pub(crate) runnable: Option<extern "C" fn(Task, u64)>,
    pub(crate) running: extern "C" fn(Task),
    pub(crate) stopping: extern "C" fn(Task, bool),
    pub(crate) yield_: Option<extern "C" fn(Task, Task) -> bool>,
    pub(crate) set_weight: extern "C" fn(Task, u32),
    pub(crate) update_idle: extern "C" fn(i32, bool),
    pub(crate) cpu_release: Option<extern "C" fn(i32, *const i32)>,
    pub(crate) init_task: extern "C" fn(Task, *const bool) -> i32,
    pub(crate) enable: Option<extern "C" fn(Task)>,
    pub(crate) disable: Option<extern "C" fn(Task)>,
    pub(crate) init: extern "C" fn() -> i32,
    pub(crate) exit: Option<extern "C" fn(*const c_void)>,
    pub(crate) flags: u64,
    pub(crate) timeout_ms: u32,
    pub(crate) name: *const c_char,
}

/// `struct hearth_policy`.
#[repr(C)]
pub(crate) struct NativePolicy {
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
pub(crate) struct NativeTopology {
    nr_cpus: u32,
    nr_domains: u32,
    domain_of: [u32; MAX_CPUS],
    node_of: [u32; MAX_CPUS],
    member: [u32; MAX_CPUS],
    first: [u32; MAX_CPUS],
    end: [u32; MAX_CPUS],
}

const _: () = assert!(size_of::<NativeTopology>() == 8 + 20 * MAX_CPUS);

/// `struct queue_ctx`.
#[cfg(feature = "interleaved")]
#[repr(C)]
pub(crate) struct QueueContext {
    pub(crate) head: u64,
    head_epoch: u64,
    waiting: i64,
    oldest: u64,
    head_is_known: bool,
    rest: [u8; 31],
}

#[cfg(feature = "interleaved")]
const _: () = assert!(size_of::<QueueContext>() == 64);

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
    /// A task that had waited for too long, whatever its rank.
    pub late: u64,
}

const _: () = assert!(size_of::<DispatchStats>() == 64);

impl NativePolicy {
    pub(crate) fn new(policy: &Policy, machine: &Machine) -> Self {
        Self {
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
}

impl NativeTopology {
    pub(crate) fn new(machine: &Machine) -> Self {
        let (cpus, per_domain) = (machine.cpus(), machine.domain_cpus());
        let mut topology = Self {
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
}
