//! The scheduler compiled for this machine: `bpf/` as a shared object, called through sched_ext's own
//! interface by whichever [`Kernel`] loads it. `hearth-scheduler` compiles it; it is a file, which is read at
//! the first load.
//!
//! Each kernel loads a copy of its own, so kernels may run side by side: an object is loaded from a
//! memory file, and each file is another object to the loader.

mod kfuncs;
mod object;
mod storage;

pub use crate::{
    CpuMask, CpuStats, DSQ_BUILTIN, DSQ_LOCAL, ENQ_REENQ, ENQ_WAKEUP, KICK_IDLE, KICK_PREEMPT, Outcome,
    PF_KTHREAD, TASK_QUEUED, Task as Remembered, TaskStruct, WAKE_SYNC,
};
pub use kfuncs::Kernel;
pub use storage::{MapValue, TaskStorage};

use crate::{self as seam, CpuReleaseArgs, Globals, InitTaskArgs, Kfuncs, Ops, TaskPointer};
use hearth_machine::{CpuSet, Machine, MoveCosts};
use hearth_policy::{Discipline, Policy};
use kfuncs::kfuncs;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use object::Object;
use std::any::Any;
use std::ffi::{CStr, c_void};
use std::io::{Error, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

static HEARTH: Object = Object::named("hearth.so");
static HEARTH_INTERLEAVED: Object = Object::named("hearth-interleaved.so");
static PAPERS: Object = Object::named("papers.so");
static PAPERS_INTERLEAVED: Object = Object::named("papers-interleaved.so");
static BASELINE: Object = Object::named("kernel.so");

/// Where plans are published to a loaded copy.
pub type Board = seam::Board<Globals<Rc<Scheduler>>>;

/// A loaded copy of the scheduler.
pub struct Scheduler {
    ops: *const Ops,
    stats: *const CpuStats,
    /// The address of the map of tasks; none of the baseline's, which has another.
    tasks: Option<usize>,
    cpus: usize,
    domains: Vec<Vec<usize>>,
    // The kernel that the object calls back into, and the object: dropped last.
    _kernel: Rc<dyn Any>,
    library: Library,
    _file: OwnedFd,
}

impl Scheduler {
    /// Loads a copy that calls back into `kernel`, and sets its policy; `online`: CPUs that are there. It is Hearth's
    /// for a steady policy, for others the papers'; of the discipline [`Discipline::Kernel`] the baseline, another
    /// scheduler behind the same interface.
    pub fn load<K: Kernel>(
        kernel: &Rc<K>,
        policy: &Policy,
        machine: &Machine,
        online: CpuSet,
    ) -> Result<Self, Error> {
        let object = match policy.discipline {
            Discipline::Kernel => &BASELINE,
            _ if policy.steady => &HEARTH,
            _ => &PAPERS,
        };
        Self::load_object(object.bytes()?, kernel, policy, machine, online)
    }

    /// Loads a copy that also calls `access` before each access to memory, within every callback.
    pub fn load_interleaved<K: Kernel>(
        kernel: &Rc<K>,
        policy: &Policy,
        machine: &Machine,
        online: CpuSet,
        access: extern "C" fn(),
    ) -> Result<Self, Error> {
        if policy.discipline == Discipline::Kernel {
            return Err(not_of_the_baseline("it runs on one CPU at a time"));
        }
        let object = if policy.steady { &HEARTH_INTERLEAVED } else { &PAPERS_INTERLEAVED };
        let scheduler = Self::load_object(object.bytes()?, kernel, policy, machine, online)?;
        // SAFETY: interleaved.c defines it with this type.
        unsafe {
            scheduler.symbol(c"hearth_access")?.cast::<extern "C" fn()>().write(access);
        }
        Ok(scheduler)
    }

    /// Whether a CPU's queue has a head: the first of the tasks that any CPU may take, or of those that
    /// are pinned to this one.
    pub fn has_head(&self, cpu: usize, pinned: bool) -> Result<bool, Error> {
        // SAFETY: inspect.h defines it with this type, and no callback runs meanwhile.
        unsafe {
            let name = c"hearth_has_head".to_bytes_with_nul();
            let has_head = self.library.get::<extern "C" fn(i32) -> bool>(name).map_err(Error::other)?;
            Ok(has_head(seam::queue_of(cpu, pinned) as i32))
        }
    }

    /// From now on no task leaves a queue: a scheduler with a known defect, for tests.
    pub fn stall(&self) -> Result<(), Error> {
        // SAFETY: state.h defines it with this type.
        unsafe { self.symbol(c"stalls")?.cast::<bool>().write(true) };
        Ok(())
    }

    /// How long a task may wait before the kernel ends the scheduler: before [`Self::init`]. No watchdog ends the
    /// baseline.
    pub fn set_watchdog_ms(&self, ms: u32) -> Result<(), Error> {
        if self.tasks.is_none() {
            return Ok(());
        }
        // SAFETY: state.h and hearth.bpf.c define them with these types, and no callback runs meanwhile.
        unsafe {
            self.symbol(c"watchdog_ms")?.cast::<u32>().write(ms);
            (&raw mut (*self.symbol(c"hearth_ops")?.cast::<Ops>()).timeout_ms).write(ms);
        }
        Ok(())
    }

    /// Where plans for this scheduler are published. One at a time. The baseline follows none.
    pub fn board(self: &Rc<Self>) -> Result<Board, Error> {
        if self.tasks.is_none() {
            return Err(not_of_the_baseline("it follows no plan; leave the planner out"));
        }
        let (published, shapes) = (self.symbol(c"published")?.cast(), self.symbol(c"shapes")?.cast());
        let (plans, cells) = (self.symbol(c"plans")?.cast(), self.symbol(c"cell_ctxs")?.cast());
        // SAFETY: the object's globals, whose types the build has compared, and the object lives in `self`.
        let globals = unsafe { Globals::new(published, shapes, plans, cells, Rc::clone(self)) };
        Ok(Board::new(globals, self.domains.clone()))
    }

    /// What the scheduler remembers of the task with this storage, if it has been told of it.
    pub fn remembered(&self, storage: &TaskStorage) -> Option<Remembered> {
        let map = self.tasks?;
        let size = size_of::<seam::Task>() as u64;
        let value = storage.value(MapValue { map, size, create: false }).cast::<seam::Task>();
        // SAFETY: null, or this map's value in the storage, of this type: the build has compared them.
        unsafe { value.as_ref() }.copied()
    }

    /// Where a global variable is, in the object.
    fn symbol(&self, name: &CStr) -> Result<*mut c_void, Error> {
        symbol(&self.library, name)
    }

    fn load_object<K: Kernel>(
        object: &[u8],
        kernel: &Rc<K>,
        policy: &Policy,
        machine: &Machine,
        online: CpuSet,
    ) -> Result<Self, Error> {
        let domains = domains(machine, online);
        let topology = topology(machine, &domains)?;
        let file = rustix::fs::memfd_create("hearth.so", rustix::fs::MemfdFlags::CLOEXEC)?;
        std::fs::File::from(file.try_clone()?).write_all(object)?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: the object has no initializers, and what is looked up below has these types: the build has
        // compared them. The object stays loaded while `Self` lives, and so does `kernel`, whose address is
        // stable in its `Rc`.
        unsafe {
            let library = Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL).map_err(Error::other)?;
            let symbol = |name| symbol(&library, name);
            symbol(c"policy")?
                .cast::<seam::Policy>()
                .write(seam::Policy::new(&policy.on(machine.move_costs()), machine.kernel.tick_ns));
            symbol(c"topology")?.cast::<seam::Topology>().write(topology);
            symbol(c"shapes")?.cast::<seam::Shape>().write(seam::Shape::undivided(&domains));
            symbol(c"hearth_kernel")?.cast::<Kfuncs<K>>().write(kfuncs(kernel));
            let ops = symbol(c"hearth_ops")?.cast::<Ops>().cast_const();
            let stats = symbol(c"stats")?.cast::<CpuStats>().cast_const();
            let tasks = match policy.discipline {
                Discipline::Kernel => None,
                _ => Some(symbol(c"task_ctxs")?.addr()),
            };
            let (cpus, kernel) = (machine.cpus(), Rc::clone(kernel) as Rc<dyn Any>);
            Ok(Self { ops, stats, tasks, cpus, domains, _kernel: kernel, library, _file: file })
        }
    }

    fn ops(&self) -> &Ops {
        // SAFETY: points into the loaded object; see `load`.
        unsafe { &*self.ops }
    }

    /// What each CPU's dispatches led to so far.
    pub fn stats(&self) -> Vec<CpuStats> {
        // SAFETY: an array of MAX_CPUS in the loaded object, which nothing writes meanwhile.
        (0..self.cpus).map(|cpu| unsafe { self.stats.add(cpu).read() }).collect()
    }

    /// How long a task may wait before the kernel ends the scheduler.
    pub fn timeout_ns(&self) -> u64 {
        u64::from(self.ops().timeout_ms) * 1_000_000
    }

    /// `ops.init`.
    pub fn init(&self) -> i32 {
        self.ops().init.map_or(0, |init| init())
    }

    /// `ops.init_task` of a task that is new, by `fork` of its `maker` or because the scheduler is: 0, or an
    /// error's negative number.
    pub fn init_task(&self, p: &TaskStruct, fork: bool, maker: Option<&TaskStruct>) -> i32 {
        let maker = maker.map_or(std::ptr::null_mut(), task);
        self.ops().init_task.map_or(0, |init| init(task(p), &mut InitTaskArgs { fork, maker }))
    }

    /// `ops.select_cpu`; the previous CPU if there is none.
    pub fn select_cpu(&self, p: &TaskStruct, previous: usize, flags: u64) -> i32 {
        let previous = previous as i32;
        self.ops().select_cpu.map_or(previous, |select_cpu| select_cpu(task(p), previous, flags))
    }

    /// `ops.enqueue`.
    pub fn enqueue(&self, p: &TaskStruct, flags: u64) {
        if let Some(enqueue) = self.ops().enqueue {
            enqueue(task(p), flags);
        }
    }

    /// `ops.dispatch`, `previous` being the task that the CPU ran, if it can go on.
    pub fn dispatch(&self, cpu: usize, previous: Option<&TaskStruct>) {
        if let Some(dispatch) = self.ops().dispatch {
            dispatch(cpu as i32, previous.map_or(std::ptr::null_mut(), task));
        }
    }

    /// `ops.tick`.
    pub fn tick(&self, p: &TaskStruct) {
        if let Some(tick) = self.ops().tick {
            tick(task(p));
        }
    }

    /// `ops.runnable`.
    pub fn runnable(&self, p: &TaskStruct, flags: u64) {
        if let Some(runnable) = self.ops().runnable {
            runnable(task(p), flags);
        }
    }

    /// `ops.running`.
    pub fn running(&self, p: &TaskStruct) {
        if let Some(running) = self.ops().running {
            running(task(p));
        }
    }

    /// `ops.stopping`.
    pub fn stopping(&self, p: &TaskStruct, runnable: bool) {
        if let Some(stopping) = self.ops().stopping {
            stopping(task(p), runnable);
        }
    }

    /// `ops.update_idle`.
    pub fn update_idle(&self, cpu: usize, idle: bool) {
        if let Some(update_idle) = self.ops().update_idle {
            update_idle(cpu as i32, idle);
        }
    }

    /// `ops.cpu_release`, if there is one: a higher class takes the CPU.
    pub fn cpu_release(&self, cpu: usize) {
        /// `SCX_CPU_PREEMPT_RT`.
        const REASON: i32 = 0;
        if let Some(cpu_release) = self.ops().cpu_release {
            cpu_release(cpu as i32, &mut CpuReleaseArgs { reason: REASON });
        }
    }

    /// `ops.enable`, if there is one, and `ops.set_weight`: the task is new, or comes from another class.
    pub fn enable(&self, p: &TaskStruct) {
        if let Some(enable) = self.ops().enable {
            enable(task(p));
        }
        self.set_weight(p, p.weight.get());
    }

    /// `ops.disable`, if there is one: the task leaves for another class.
    pub fn disable(&self, p: &TaskStruct) {
        if let Some(disable) = self.ops().disable {
            disable(task(p));
        }
    }

    /// `ops.set_weight`.
    pub fn set_weight(&self, p: &TaskStruct, weight: u32) {
        p.weight.set(weight);
        if let Some(set_weight) = self.ops().set_weight {
            set_weight(task(p), weight);
        }
    }

    /// `ops.set_cpumask`, if there is one: the task's mask is another.
    pub fn set_cpumask(&self, p: &TaskStruct) {
        if let Some(set_cpumask) = self.ops().set_cpumask {
            set_cpumask(task(p), p.mask());
        }
    }

    /// `ops.yield`, or what the kernel does without one.
    pub fn yield_task(&self, p: &TaskStruct) {
        match self.ops().yield_ {
            Some(yield_) => drop(yield_(task(p), std::ptr::null_mut())),
            None => p.slice.set(0),
        }
    }
}

fn symbol(library: &Library, name: &CStr) -> Result<*mut c_void, Error> {
    // SAFETY: only the address is taken; who uses it says why it may.
    let symbol = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) };
    symbol.map_err(Error::other).map(|symbol| symbol.into_raw())
}

fn not_of_the_baseline(why: &str) -> Error {
    Error::other(format!("the discipline \"kernel\" is a model of Linux's own scheduler: {why}"))
}

/// What C may write of a task is in cells.
fn task(p: &TaskStruct) -> TaskPointer {
    std::ptr::from_ref(p).cast_mut()
}

/// The CPUs of each cache domain, of those that are there.
fn domains(machine: &Machine, online: CpuSet) -> Vec<Vec<usize>> {
    let cpus: Vec<usize> = (0..machine.cpus()).collect();
    let is_online = |cpu: &&usize| online.has(**cpu);
    let domains = cpus.chunks(machine.domain_cpus());
    domains.map(|domain| domain.iter().filter(is_online).copied().collect()).collect()
}

fn topology(machine: &Machine, domains: &[Vec<usize>]) -> Result<seam::Topology, Error> {
    let topology = seam::Topology::new(machine.cpus(), domains, |cpu| machine.node_of(cpu))
        .map_err(|error| Error::other(format!("{}: {error}", machine.name)))?;
    let MoveCosts { cpu_ns, cache_ns, node_ns } = machine.move_costs();
    Ok(seam::Topology { cpu_move_ns: cpu_ns, cache_move_ns: cache_ns, node_move_ns: node_ns, ..topology })
}
