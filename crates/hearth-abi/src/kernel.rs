//! sched_ext, as far as the scheduler and its hosts use it: constants, and for the native build the
//! kernel's types (`bpf/native/vmlinux.h`) and its functions as a table (`bpf/native/bpf/bpf_helpers.h`).

use crate::MASK_WORDS;
use crate::declare::{c_types, constants, functions, shared};
use hearth_machine::CpuSet;
use std::cell::Cell;
use std::ffi::{c_char, c_void};

constants! { all {
    /// The queue of the CPU that dispatches, or of that which `select_cpu` returns.
    SCX_DSQ_LOCAL => DSQ_LOCAL: u64 = 0x8000_0000_0000_0002;
    /// An enqueue's flag: the task has woken up.
    SCX_ENQ_WAKEUP => ENQ_WAKEUP: u64 = 1 << 0;
    /// An enqueue's flag: the task was about to run on a CPU that a higher class has taken.
    SCX_ENQ_REENQ => ENQ_REENQ: u64 = 1 << 40;
    /// A wake-up's flag: who makes it is about to sleep.
    SCX_WAKE_SYNC => WAKE_SYNC: u64 = 1 << 4;
    /// A kick's flag: nothing happens if the CPU is busy.
    SCX_KICK_IDLE => KICK_IDLE: u64 = 1 << 0;
    /// A kick's flag: the task that runs loses its slice.
    SCX_KICK_PREEMPT => KICK_PREEMPT: u64 = 1 << 1;
    /// A task's flag: it is on a run queue.
    SCX_TASK_QUEUED => TASK_QUEUED: u32 = 1 << 0;
    /// A flag of `bpf_task_storage_get`: storage that a task does not have yet is made.
    BPF_LOCAL_STORAGE_GET_F_CREATE => STORAGE_CREATE: u64 = 1 << 0;
} }

constants! { of_the_real_kernel {
    /// The queue ids with this bit are the kernel's own.
    SCX_DSQ_FLAG_BUILTIN => DSQ_BUILTIN: u64 = 1 << 63;
    /// A scheduler's flag: only tasks that ask for sched_ext are its own.
    SCX_OPS_SWITCH_PARTIAL => OPS_SWITCH_PARTIAL: u64 = 1 << 3;
    /// A scheduler's flag: it is given tasks, too, that may run only where they are for a moment.
    SCX_OPS_ENQ_MIGRATION_DISABLED => OPS_ENQ_MIGRATION_DISABLED: u64 = 1 << 4;
    /// A scheduler's flag: a wake-up may be handed to the CPU where the task will run.
    SCX_OPS_ALLOW_QUEUED_WAKEUP => OPS_ALLOW_QUEUED_WAKEUP: u64 = 1 << 5;
    /// An exit code's bit: the kernel asks to be given the scheduler again.
    SCX_ECODE_ACT_RESTART => EXIT_RESTART: i64 = 1 << 48;
} }

/// A process's flag: it is a thread of the kernel's. A macro in the kernel, and so in `bpf/places.h`.
pub const PF_KTHREAD: u32 = 0x0020_0000;

shared! {
    /// `struct cpumask`.
    pub struct CpuMask = cpumask {
        /// CPU n is bit n % 64 of word n / 64.
        pub bits: [Cell<u64>; MASK_WORDS],
    }
}

shared! {
    /// `struct task_struct`, as far as the scheduler may look.
    pub struct TaskStruct = task_struct {
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
        /// More than 0: it may run only where it is.
        pub migration_disabled: Cell<u32>,
        /// [`PF_KTHREAD`], if it is the kernel's.
        pub process_flags @ "flags": Cell<u32>,
        cpus_ptr: Box<CpuMask>,
        /// `SCX_TASK_QUEUED`.
        pub flags @ "scx.flags": Cell<u32>,
        /// 100 at nice 0.
        pub weight @ "scx.weight": Cell<u32>,
        /// What is left of it, in ns.
        pub slice @ "scx.slice": Cell<u64>,
        /// Its place in a queue that is ordered by vtime.
        pub dsq_vtime @ "scx.dsq_vtime": Cell<u64>,
        /// When it became runnable, in ticks.
        pub runnable_at @ "scx.runnable_at": Cell<u64>,
        /// CPU time that it has had.
        pub sum_exec_ns @ "se.sum_exec_runtime": Cell<u64>,
        comm: [u8; 16],
        /// The id of its group.
        pub group: Cell<u64>,
        /// The data fragment that it declares; 0 for none.
        pub declared: Cell<u64>,
    }
}

impl CpuMask {
    /// The CPUs whose bits are set.
    pub fn set(&self) -> CpuSet {
        CpuSet::of_words(self.bits.each_ref().map(Cell::get))
    }

    fn become_set(&self, cpus: CpuSet) {
        self.bits.iter().zip(cpus.words()).for_each(|(word, bits)| word.set(bits));
    }
}

impl TaskStruct {
    /// A task that may run on the CPUs in `allowed`.
    pub fn new(pid: i32, cpu: usize, allowed: CpuSet, name: &str) -> Self {
        let mut comm = [0; 16];
        name.bytes().take(15).zip(&mut comm).for_each(|(from, to)| *to = from);
        Self {
            pid,
            tgid: pid,
            cpu: Cell::new(cpu as u32),
            on_cpu: Cell::new(0),
            nr_cpus_allowed: Cell::new(allowed.len() as u32),
            migration_disabled: Cell::new(0),
            process_flags: Cell::new(0),
            cpus_ptr: Box::new(CpuMask { bits: allowed.words().map(Cell::new) }),
            flags: Cell::new(0),
            weight: Cell::new(100),
            slice: Cell::new(0),
            dsq_vtime: Cell::new(0),
            runnable_at: Cell::new(0),
            sum_exec_ns: Cell::new(0),
            comm,
            group: Cell::new(1),
            declared: Cell::new(0),
        }
    }

    /// The task's name, as far as the kernel keeps it.
    pub fn name(&self) -> String {
        self.comm.iter().take_while(|&&byte| byte != 0).map(|&byte| char::from(byte)).collect()
    }

    /// CPUs that the task may run on.
    pub fn allowed(&self) -> CpuSet {
        self.cpus_ptr.set()
    }

    /// `cpus_ptr`.
    pub fn mask(&self) -> CpuMaskPointer {
        &*self.cpus_ptr
    }

    /// As `migrate_disable_switch` does: CPUs that it may run on for now. How many it has stays.
    pub fn pin(&self, cpus: CpuSet) {
        self.cpus_ptr.become_set(cpus);
    }

    /// `set_cpus_allowed_ptr`, of a task that is in no queue.
    pub fn allow(&self, cpus: CpuSet) {
        self.cpus_ptr.become_set(cpus);
        self.nr_cpus_allowed.set(cpus.len() as u32);
    }
}

/// `struct task_struct *`, of a task that outlives the call.
pub type TaskPointer = *mut TaskStruct;

shared! {
    /// `struct scx_init_task_args`.
    pub struct InitTaskArgs = scx_init_task_args {
        /// The task is new; else the scheduler is.
        pub fork: bool,
        /// The kernel's current task, if it forks; else null.
        pub maker: TaskPointer,
    }
}

shared! {
    /// `struct scx_cpu_release_args`.
    pub struct CpuReleaseArgs = scx_cpu_release_args {
        /// Which class takes the CPU (`enum scx_cpu_preempt_reason`).
        pub reason: i32,
    }
}

shared! {
    /// `struct scx_dump_ctx`.
    pub struct DumpContext = scx_dump_ctx {
        /// When the kernel found an error, in ticks.
        pub at_jiffies: u64,
    }
}

shared! {
    /// `struct scx_exit_info`.
    pub struct ExitInfo = scx_exit_info {
        /// `enum scx_exit_kind`.
        pub kind: i32,
        /// What the scheduler gave with it.
        pub exit_code: i64,
        /// The kernel's word for the kind.
        pub reason: *const c_char,
        /// The kernel's explanation.
        pub msg: *const c_char,
        /// The kernel's account of CPUs and tasks.
        pub dump: *const c_char,
    }
}

/// `const struct cpumask *`.
pub type CpuMaskPointer = *const CpuMask;

c_types! {
    CpuMaskPointer => "const struct cpumask *",
    TaskPointer => "struct task_struct *",
    &TaskStruct => "struct task_struct *",
    &CpuMask => "const struct cpumask *",
    Box<CpuMask> => "const struct cpumask *",
    *mut InitTaskArgs => "struct scx_init_task_args *",
    *mut CpuReleaseArgs => "struct scx_cpu_release_args *",
    *mut DumpContext => "struct scx_dump_ctx *",
    *mut ExitInfo => "struct scx_exit_info *",
}

shared! {
    /// `struct sched_ext_ops`: the scheduler's callbacks. A scheduler may lack any of them.
    #[allow(missing_docs)]
    pub struct Ops = sched_ext_ops {
        pub select_cpu: Option<extern "C" fn(TaskPointer, i32, u64) -> i32>,
        pub enqueue: Option<extern "C" fn(TaskPointer, u64)>,
        pub dispatch: Option<extern "C" fn(i32, TaskPointer)>,
        pub tick: Option<extern "C" fn(TaskPointer)>,
        pub runnable: Option<extern "C" fn(TaskPointer, u64)>,
        pub running: Option<extern "C" fn(TaskPointer)>,
        pub stopping: Option<extern "C" fn(TaskPointer, bool)>,
        pub yield_ @ "yield": Option<extern "C" fn(TaskPointer, TaskPointer) -> bool>,
        pub set_weight: Option<extern "C" fn(TaskPointer, u32)>,
        pub set_cpumask: Option<extern "C" fn(TaskPointer, CpuMaskPointer)>,
        pub update_idle: Option<extern "C" fn(i32, bool)>,
        pub cpu_release: Option<extern "C" fn(i32, *mut CpuReleaseArgs)>,
        pub init_task: Option<extern "C" fn(TaskPointer, *mut InitTaskArgs) -> i32>,
        pub enable: Option<extern "C" fn(TaskPointer)>,
        pub disable: Option<extern "C" fn(TaskPointer)>,
        pub init: Option<extern "C" fn() -> i32>,
        pub dump: Option<extern "C" fn(*mut DumpContext)>,
        pub dump_cpu: Option<extern "C" fn(*mut DumpContext, i32, bool)>,
        pub dump_task: Option<extern "C" fn(*mut DumpContext, TaskPointer)>,
        pub exit: Option<extern "C" fn(*mut ExitInfo)>,
        pub flags: u64,
        pub timeout_ms: u32,
        pub name: *const c_char,
    }
}

functions! {
    /// `struct hearth_kernel`: the kfuncs, as a kernel `K` has them.
    #[allow(missing_docs)]
    pub struct Kfuncs<K> = hearth_kernel {
        create_dsq: fn(u64, i32) -> i32,
        dsq_insert: fn(&TaskStruct, u64, u64, u64),
        dsq_insert_vtime: fn(&TaskStruct, u64, u64, u64, u64),
        dsq_move_to_local: fn(u64) -> bool,
        dsq_nr_queued: fn(u64) -> i32,
        dsq_peek: fn(u64) -> TaskPointer,
        dsq_walk_new: fn(u64) -> *mut c_void,
        dsq_walk_next: fn(*mut c_void) -> TaskPointer,
        dsq_walk_destroy: fn(*mut c_void),
        dsq_move: fn(*mut c_void, &TaskStruct, u64, u64) -> bool,
        dsq_move_vtime: fn(*mut c_void, &TaskStruct, u64, u64, u64) -> bool,
        test_and_clear_cpu_idle: fn(i32) -> bool,
        pick_idle_cpu: fn(&CpuMask, u64) -> i32,
        select_cpu_dfl: fn(&TaskStruct, i32, u64, &mut bool) -> i32,
        kick_cpu: fn(i32, u64),
        now: fn() -> u64,
        smp_processor_id: fn() -> u32,
        reenqueue_local: fn() -> u32,
        /// The storage of a task in the map at this address, of so many bytes; flags last.
        task_storage: fn(&TaskStruct, *const c_void, u64, u64) -> *mut c_void,
        error: fn(*const c_char),
    }
}
