//! The simulated kernel: tasks, wake-ups, dispatch, ticks. What of it is sched_ext is `hearth-scx`, which
//! calls the scheduler and refuses what the kernel refuses; here is what it costs, and what is measured.

mod account;
mod audit;
mod change;
mod costs;
mod fragments;
mod higher;
mod host;
mod interrupts;
mod pages;
mod planning;
mod runs;
mod switch;
mod task;
mod weighing;

pub(crate) use account::{Account, Begin};
pub(crate) use audit::Audit;
pub(crate) use costs::{Costs, Entry};
pub(crate) use task::{State, Task, pid_of};

use crate::measure::RunResult;
use crate::memory::Memory;
use crate::options::Options;
use crate::program::{Application, Asked, Body, End, TaskId};
use fragments::Found;
use hearth_abi::native::{Scheduler, TaskStruct};
use hearth_hardware::{Counters, Hardware, Port};
use hearth_machine::{CpuSet, Machine};
use hearth_policy::Policy;
use hearth_policy::pages::InMiss;
use hearth_policy::snapshot::Class;
use hearth_scx::{Scx, Shape};
use higher::HigherClass;
use host::Ports;
use planning::Planning;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use runs::Runs;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Error;
use std::rc::Rc;

/// A CPU of the kernel.
pub(crate) struct KernelCpu {
    pub(crate) current: Option<TaskId>,
    /// Why the run queue is to be inspected at the next opportunity.
    pub(crate) resched: Option<End>,
    pub(crate) next_tick_ps: u64,
    /// By how much its ticks are later than those of a CPU in step.
    tick_phase_ps: u64,
}

impl KernelCpu {
    fn is_active(&self) -> bool {
        self.current.is_some() || self.resched.is_some()
    }
}

/// Loads the scheduler for the CPUs that are there.
type Load = Box<dyn Fn(CpuSet) -> Result<Scheduler, Error>>;

/// The kernel's state.
pub(crate) struct Kernel {
    pub(crate) scx: hearth_scx::Kernel<Ports>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) cpus: Vec<KernelCpu>,
    pub(crate) account: Account,
    pub(crate) memory: Memory,
    pub(crate) tick_ps: u64,
    flush: Flush,
    load: Load,
    higher: HigherClass,
    hardware: Rc<RefCell<Hardware>>,
    ports: Vec<Rc<Port>>,
    costs: Costs,
    failure: Option<String>,
    /// Which pages to move in a miss; nothing if they stay.
    pages: Option<InMiss>,
    /// Who plans; nothing if tasks are scheduled without a plan.
    planning: Option<Planning>,
    /// Parallel programs that asked to be scheduled as one, with their applications, in the order in which
    /// they started.
    programs: Vec<(usize, Asked)>,
    /// Classes of applications, by group.
    classes: BTreeMap<u64, Class>,
    /// Runs of tasks beside the same others; nothing if nobody wants to know.
    runs: Option<Runs>,
    /// Whether to keep them until the end.
    records_runs: bool,
    /// Whether the policy heeds what tasks declare, and where that was found.
    follows_fragments: bool,
    found: Found,
    domain_of: Vec<usize>,
    node_of: Vec<usize>,
}

/// When caches are emptied, to measure what reloading them costs (section 3.1.1 of the paper).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// Never: a normal run.
    #[default]
    Never,
    /// Before each dispatch interval.
    EachInterval,
    /// Before each effective time slice.
    EachSlice,
    /// All caches at once, each time that so many nanoseconds have passed, as if another gang had run in
    /// between (Chandra and others, ASPLOS 1994, section 5.3.2.1).
    Each(u64),
}

impl Kernel {
    pub(crate) fn new(
        machine: &Machine,
        policy: &Policy,
        hardware: &Rc<RefCell<Hardware>>,
        options: &Options,
    ) -> Result<Self, Error> {
        let ports = hardware.borrow().ports().to_vec();
        let scx = Rc::new(Scx::new(Ports::new(&ports), Shape::new(machine)));
        let load = loader(&scx, machine, policy, options);
        let memory = Memory::new(Rc::clone(hardware));
        Ok(Self {
            costs: Costs::new(machine, &memory),
            scx: hearth_scx::Kernel::new(&scx, load(scx.online())?),
            tasks: Vec::new(),
            cpus: cpus(machine, options),
            account: Account::new(machine),
            memory,
            tick_ps: machine.kernel.tick_ns * 1000,
            flush: options.flush,
            load,
            higher: HigherClass::new(ports.len()),
            ports,
            hardware: Rc::clone(hardware),
            failure: None,
            pages: None,
            planning: None,
            programs: Vec::new(),
            classes: BTreeMap::new(),
            runs: options.record_runs.then(|| Runs::new(machine.cpus(), machine.cycle_ps())),
            records_runs: options.record_runs,
            follows_fragments: policy.credit.fragment_ns > 0,
            found: Found::default(),
            domain_of: (0..machine.cpus()).map(|cpu| cpu / machine.domain_cpus()).collect(),
            node_of: (0..machine.cpus()).map(|cpu| machine.node_of(cpu)).collect(),
        })
    }

    /// What ended the scheduler's life, in the kernel's words.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.clone().or_else(|| self.scx.failure())
    }

    pub(crate) fn port(&self, cpu: usize) -> &Rc<Port> {
        &self.ports[cpu]
    }

    /// A CPU spends what a path through the kernel costs.
    pub(crate) fn charge(&self, cpu: usize, entry: Entry) {
        let task = self.cpus[cpu].current.map(|task| self.tasks[task].kernel_data);
        self.costs.charge(&mut self.hardware.borrow_mut(), &self.ports[cpu], entry, task);
    }

    /// A page was touched first by the task on this CPU.
    pub(crate) fn page_fault(&self, cpu: usize, address: u64) {
        self.charge(cpu, Entry::PageFault);
        self.costs.clear_page(&mut self.hardware.borrow_mut(), &self.ports[cpu], address);
    }

    /// Empties all caches; takes no time.
    pub(crate) fn flush(&self) {
        (0..self.cpus.len()).for_each(|cpu| self.hardware.borrow_mut().flush(cpu));
    }

    /// A program begins or ends its parallel section, on this CPU.
    pub(crate) fn mark(&mut self, task: TaskId, cpu: usize, begins: bool) {
        let mut counters = Counters::default();
        self.ports.iter().for_each(|port| counters += port.counters());
        let application = self.tasks[task].application;
        self.account.mark(application, self.ports[cpu].now_ps(), counters, begins);
    }

    /// Creates a task, forked by `maker`, that may run on the CPUs in `mask`, of an application, which is its group. It
    /// first runs when [`wake`](Self::wake) has been called.
    pub(crate) fn create(
        &mut self,
        cpu: usize,
        maker: Option<TaskId>,
        application: usize,
        mask: CpuSet,
        name: &str,
        body: Body,
    ) -> TaskId {
        let id = self.tasks.len();
        let sched = Rc::new(TaskStruct::new(pid_of(id), cpu, mask, name));
        sched.group.set(application as u64 + 1);
        self.account.task(name, application);
        let kernel_data = self.costs.task_data(&self.memory);
        self.scx.run_on(cpu);
        let scx = self.scx.add_task(&sched, maker.map(pid_of));
        self.tasks.push(Task::new(id, application, mask, scx, kernel_data, &self.memory, body));
        id
    }

    /// A task that has just run has come to its end.
    pub(crate) fn end(&mut self, task: TaskId, cpu: usize) {
        self.tasks[task].is_dead = true;
        self.account.task_ended(task, self.ports[cpu].now_ps());
        self.charge(cpu, Entry::Fork);
        self.schedule(cpu, End::Exit, false);
        self.scx.end_task(pid_of(task));
    }

    /// The CPUs on which an application's tasks may run.
    pub(crate) fn mask_of(&self, application: &Application) -> CpuSet {
        let cpus = application.cpus & self.all_cpus();
        if cpus.is_empty() { self.all_cpus() } else { cpus }
    }

    /// All CPUs.
    pub(crate) fn all_cpus(&self) -> CpuSet {
        CpuSet::first(self.cpus.len())
    }

    /// Whether a CPU has something to do.
    pub(crate) fn is_active(&self, cpu: usize) -> bool {
        self.cpus[cpu].is_active()
    }

    /// The CPUs that have something to do, each with its time.
    pub(crate) fn active(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let cpus = self.cpus.iter().zip(&self.ports).enumerate();
        cpus.filter(|(_, (cpu, _))| cpu.is_active()).map(|(number, (_, port))| (number, port.now_ps()))
    }

    /// How long a task may wait before the kernel ends the scheduler.
    pub(crate) fn timeout_ns(&self) -> u64 {
        self.scx.scheduler().timeout_ns()
    }

    /// Notes how far the applications are.
    pub(crate) fn sample(&mut self, now_ps: u64) {
        let hardware = self.hardware.borrow();
        self.account.sample(now_ps, |task| hardware.resident(owner(task)));
    }

    /// What was measured; the kernel is at its end.
    pub(crate) fn finish(mut self) -> RunResult {
        for cpu in (0..self.cpus.len()).filter(|&cpu| self.cpus[cpu].current.is_some()) {
            self.account.interval_ends(cpu, &self.ports[cpu], End::Exit);
        }
        let runs = self.end_of_runs();
        let dispatches = self.scx.scheduler().stats();
        let misses = self.hardware.borrow_mut().take_miss_log();
        let planned = self.planning.map(Planning::end);
        RunResult { planned, runs, ..self.account.finish(&self.ports, dispatches, misses) }
    }
}

fn loader(scx: &Rc<Scx<Ports>>, machine: &Machine, policy: &Policy, options: &Options) -> Load {
    let Options { watchdog_ms, stalls, .. } = *options;
    let (scx, machine, policy) = (Rc::clone(scx), machine.clone(), policy.clone());
    Box::new(move |online| {
        let scheduler = Scheduler::load(&scx, &policy, &machine, online)?;
        scheduler.set_watchdog_ms(watchdog_ms)?;
        if stalls {
            scheduler.stall()?;
        }
        Ok(scheduler)
    })
}

fn cpus(machine: &Machine, options: &Options) -> Vec<KernelCpu> {
    let mut random = Pcg32::seed_from_u64(options.seed);
    let tick_ps = machine.kernel.tick_ns * 1000;
    let mut phase_ps = || match options.ticks_in_step {
        true => 0,
        false => random.next_u64() % tick_ps,
    };
    let cpu = |phase_ps| KernelCpu {
        current: None,
        resched: None,
        next_tick_ps: tick_ps + phase_ps,
        tick_phase_ps: phase_ps,
    };
    (0..machine.cpus()).map(|_| cpu(phase_ps())).collect()
}

/// A task as the hardware knows it, which has 0 for the kernel.
fn owner(task: TaskId) -> u16 {
    task as u16 + 1
}
