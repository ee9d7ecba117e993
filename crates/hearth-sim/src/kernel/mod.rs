//! The simulated kernel: tasks, wake-ups, dispatch, ticks. It calls the scheduler as sched_ext does,
//! in the kernel's order (kernel/sched/ext.c), and refuses what the kernel refuses.

mod account;
mod costs;
mod pages;
pub(crate) mod scx;
mod switch;
mod task;

pub(crate) use account::{Account, Begin};
pub(crate) use costs::{Costs, Entry};
pub(crate) use task::{State, Task};

use crate::measure::RunResult;
use crate::memory::Memory;
use crate::program::{Body, End, TaskId};
use hearth_hardware::{Hardware, Port};
use hearth_machine::Machine;
use hearth_native::{ENQ_WAKEUP, KICK_IDLE, KICK_PREEMPT, Scheduler, TASK_QUEUED, TaskStruct};
use hearth_policy::Policy;
use hearth_policy::pages::Planner;
use scx::{Callback, Scx};
use std::cell::RefCell;
use std::rc::Rc;

/// `SCX_SLICE_DFL`.
const SLICE_DEFAULT_NS: u64 = 20_000_000;

/// A CPU of the kernel.
pub(crate) struct KernelCpu {
    pub(crate) current: Option<TaskId>,
    /// Why the run queue is to be inspected at the next opportunity.
    pub(crate) resched: Option<End>,
    pub(crate) next_tick_ps: u64,
    /// Up to when the current task's slice has been charged.
    charged_ps: u64,
}

/// The kernel's state.
pub(crate) struct Kernel {
    pub(crate) scx: Rc<Scx>,
    pub(crate) scheduler: Scheduler,
    pub(crate) tasks: Vec<Task>,
    pub(crate) cpus: Vec<KernelCpu>,
    pub(crate) account: Account,
    pub(crate) memory: Memory,
    pub(crate) tick_ps: u64,
    pub(crate) flush: Flush,
    hardware: Rc<RefCell<Hardware>>,
    ports: Vec<Rc<Port>>,
    costs: Costs,
    failure: Option<String>,
    /// Which pages to move; nothing if they stay.
    pages: Option<Planner>,
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
}

impl Kernel {
    pub(crate) fn new(
        machine: &Machine,
        policy: &Policy,
        hardware: &Rc<RefCell<Hardware>>,
    ) -> Result<Self, std::io::Error> {
        let cpus = machine.cpus();
        let scx = Rc::new(Scx::new(near(machine)));
        let scheduler = Scheduler::load(&scx, policy, machine)?;
        let memory = Memory::new(Rc::clone(hardware));
        let tick_ps = machine.kernel.tick_ns * 1000;
        let cpu = || KernelCpu { current: None, resched: None, next_tick_ps: tick_ps, charged_ps: 0 };
        let mut kernel = Self {
            costs: Costs::new(machine, &memory),
            scx,
            scheduler,
            tasks: Vec::new(),
            cpus: (0..cpus).map(|_| cpu()).collect(),
            account: Account::new(machine),
            memory,
            tick_ps,
            flush: Flush::Never,
            ports: hardware.borrow().ports().to_vec(),
            hardware: Rc::clone(hardware),
            failure: None,
            pages: None,
            node_of: (0..cpus).map(|cpu| machine.node_of(cpu)).collect(),
        };
        kernel.enter(0, Callback::Other);
        let code = kernel.scheduler.init();
        if code != 0 {
            kernel.failure = Some(format!("ops.init() failed ({code})"));
        }
        Ok(kernel)
    }

    /// What ended the scheduler's life, in the kernel's words.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.clone().or_else(|| self.scx.error())
    }

    pub(crate) fn port(&self, cpu: usize) -> &Rc<Port> {
        &self.ports[cpu]
    }

    fn enter(&self, cpu: usize, callback: Callback) {
        self.scx.enter(cpu, self.ports[cpu].now_ps(), callback);
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

    /// Creates a task; it first runs when [`wake`](Self::wake) has been called.
    pub(crate) fn create(&mut self, cpu: usize, application: usize, name: &str, body: Body) -> TaskId {
        let id = self.tasks.len();
        let sched = Rc::new(TaskStruct::new(id as i32, cpu, self.all_cpus(), name));
        self.scx.add_task(&sched);
        self.account.task(name, application);
        let kernel_data = self.costs.task_data(&self.memory);
        self.tasks.push(Task::new(id, application, sched, kernel_data, &self.memory, body));
        self.enter(cpu, Callback::Other);
        let code = self.scheduler.init_task(&self.tasks[id].sched, true);
        if code != 0 {
            self.failure = Some(format!("ops.init_task() failed ({code}) for {name}[{id}]"));
        }
        id
    }

    /// All CPUs, as bits.
    pub(crate) fn all_cpus(&self) -> u64 {
        u64::MAX >> (u64::BITS as usize - self.cpus.len())
    }

    /// Makes a blocked task runnable (`try_to_wake_up`), on the CPU `waker`. If it is not blocked, its
    /// next block returns at once.
    pub(crate) fn wake(&mut self, task: TaskId, waker: usize, why: End) {
        match self.tasks[task].state {
            State::Blocked => {}
            State::Dead => return,
            _ => {
                self.tasks[task].wake_pending = true;
                return;
            }
        }
        let sched = Rc::clone(&self.tasks[task].sched);
        self.tasks[task].state = State::Waiting;
        self.tasks[task].woken_ps = Some(self.ports[waker].now_ps());
        self.waits(task, waker);
        let pid = sched.pid;
        self.enter(waker, Callback::Placing { pid });
        let target = self.scheduler.select_cpu(&sched, sched.cpu.get() as usize, 0);
        let Ok(target) = usize::try_from(target) else {
            self.failure = Some(format!("ops.select_cpu() returned {target} for {}[{pid}]", sched.name()));
            return;
        };
        if target >= self.cpus.len() {
            self.failure = Some(format!("ops.select_cpu() returned CPU {target}, which does not exist"));
            return;
        }
        let allowed = sched.allowed();
        // As `select_fallback_rq` does.
        let target = if allowed >> target & 1 == 1 { target } else { allowed.trailing_zeros() as usize };
        sched.cpu.set(target as u32);
        sched.flags.set(sched.flags.get() | TASK_QUEUED);
        self.scheduler.runnable(&sched, ENQ_WAKEUP);
        let direct = self.scx.finish_direct(pid, target);
        if !direct {
            self.enqueue(task, target, waker, ENQ_WAKEUP);
        }
        // `wakeup_preempt`: any task goes before the idle one.
        if direct || self.cpus[target].current.is_none() {
            self.reschedule(target, waker, why);
        }
        self.serve_kicks(waker, why);
    }

    /// `set_task_runnable`: it begins to wait, by the clock of a CPU.
    fn waits(&mut self, task: TaskId, cpu: usize) {
        let (now_ps, tick_ps) = (self.ports[cpu].now_ps(), self.tick_ps);
        let task = &mut self.tasks[task];
        task.waiting_since_ps = now_ps;
        task.sched.runnable_at.set(now_ps / tick_ps);
    }

    /// `do_enqueue_task`: the scheduler says where a runnable task waits.
    fn enqueue(&mut self, task: TaskId, target: usize, on: usize, flags: u64) {
        let sched = Rc::clone(&self.tasks[task].sched);
        self.enter(on, Callback::Placing { pid: sched.pid });
        self.scheduler.enqueue(&sched, flags);
        self.scx.finish_direct(sched.pid, target);
    }

    /// Carries out the kicks that the scheduler asked for.
    fn serve_kicks(&mut self, from: usize, why: End) {
        for (cpu, flags) in self.scx.take_kicks() {
            if flags & KICK_IDLE != 0 && self.cpus[cpu].current.is_some() {
                continue;
            }
            if flags & KICK_PREEMPT != 0 {
                self.charge_slice(cpu);
                if let Some(current) = self.cpus[cpu].current {
                    self.tasks[current].sched.slice.set(0);
                }
            }
            self.reschedule(cpu, from, why);
        }
    }

    /// A CPU shall inspect its run queue; another one is interrupted for it.
    fn reschedule(&mut self, cpu: usize, from: usize, why: End) {
        if self.cpus[cpu].resched.is_some() {
            return;
        }
        self.cpus[cpu].resched = Some(if cpu == from { why } else { End::Interrupt });
        if cpu == from {
            return;
        }
        if self.cpus[cpu].current.is_none() {
            let now_ps = self.ports[from].now_ps().max(self.ports[cpu].now_ps());
            self.account.idle_until(cpu, self.ports[cpu].now_ps(), now_ps);
            self.ports[cpu].set_now_ps(now_ps);
        }
        self.charge(cpu, Entry::Interrupt);
    }

    /// From now on no task leaves a queue.
    pub(crate) fn stall(&self) -> Result<(), std::io::Error> {
        self.scheduler.stall()
    }

    /// Whether a CPU has something to do.
    pub(crate) fn is_active(&self, cpu: usize) -> bool {
        self.cpus[cpu].current.is_some() || self.cpus[cpu].resched.is_some()
    }

    /// An event reaches a CPU that may be idle: its clock moves up to it.
    pub(crate) fn interrupt(&mut self, cpu: usize, at_ps: u64) {
        let now_ps = self.ports[cpu].now_ps();
        if !self.is_active(cpu) && at_ps > now_ps {
            self.account.idle_until(cpu, now_ps, at_ps);
            self.ports[cpu].set_now_ps(at_ps);
        }
        self.charge(cpu, Entry::Interrupt);
    }

    /// The timer interrupt of a CPU that runs a task.
    pub(crate) fn tick(&mut self, cpu: usize) {
        self.cpus[cpu].next_tick_ps += self.tick_ps;
        self.charge(cpu, Entry::Tick);
        let Some(current) = self.cpus[cpu].current else { return };
        self.charge_slice(cpu);
        let sched = Rc::clone(&self.tasks[current].sched);
        self.enter(cpu, Callback::Other);
        self.scheduler.tick(&sched);
        if sched.slice.get() == 0 {
            self.cpus[cpu].resched.get_or_insert(End::Quantum);
        }
        self.serve_kicks(cpu, End::Interrupt);
    }

    /// `update_curr_scx`: adds the time since the last call to the current task's account, and takes it
    /// off its slice.
    fn charge_slice(&mut self, cpu: usize) {
        let now_ps = self.ports[cpu].now_ps();
        let kernel_cpu = &mut self.cpus[cpu];
        let ran_ns = now_ps.saturating_sub(kernel_cpu.charged_ps) / 1000;
        kernel_cpu.charged_ps = now_ps;
        if let Some(current) = kernel_cpu.current {
            let sched = &self.tasks[current].sched;
            sched.sum_exec_ns.set(sched.sum_exec_ns.get() + ran_ns);
            sched.slice.set(sched.slice.get().saturating_sub(ran_ns));
        }
    }

    /// The current task gives up its CPU but stays runnable (`sched_yield`).
    pub(crate) fn yield_current(&mut self, cpu: usize, why: End) {
        if let Some(current) = self.cpus[cpu].current {
            let sched = Rc::clone(&self.tasks[current].sched);
            self.enter(cpu, Callback::Other);
            self.scheduler.yield_task(&sched);
        }
        self.cpus[cpu].resched = Some(why);
    }

    /// Notes how far the applications are.
    pub(crate) fn sample(&mut self, now_ps: u64) {
        let hardware = self.hardware.borrow();
        self.account.sample(now_ps, |task| hardware.resident(owner(task)));
    }

    /// What was measured; the kernel is at its end.
    pub(crate) fn finish(self) -> RunResult {
        let dispatches = self.scheduler.stats();
        let misses = self.hardware.borrow_mut().take_miss_log();
        self.account.finish(&self.ports, dispatches, misses)
    }

    /// A runnable task that has not run for the watchdog's time, if there is one.
    pub(crate) fn stalled(&self, now_ps: u64) -> Option<String> {
        let timeout_ns = self.scheduler.timeout_ns();
        let late = |task: &&Task| {
            task.state == State::Waiting && now_ps.saturating_sub(task.waiting_since_ps) / 1000 > timeout_ns
        };
        self.tasks.iter().find(late).map(|task| {
            let waited = (now_ps - task.waiting_since_ps) as f64 / 1e12;
            let (name, pid) = (task.sched.name(), task.sched.pid);
            let lost = if self.scx.is_waiting(pid) { "" } else { "; it is in no dispatch queue" };
            format!("runnable task stall ({name}[{pid}] failed to run for {waited:.3}s{lost})")
        })
    }

    /// What no kernel may do, if it has been done: lose a task, run it twice, or (unless tasks are
    /// attached) leave a CPU idle beside a task that may run there.
    pub(crate) fn audit(&self, attached: bool) -> Option<String> {
        let idle = (0..self.cpus.len()).find(|&cpu| !self.is_active(cpu));
        let mut waiting = 0;
        for task in &self.tasks {
            let (name, pid) = (task.sched.name(), task.sched.pid);
            let running = self.cpus.iter().filter(|cpu| cpu.current == Some(pid as TaskId)).count();
            let queued = self.scx.is_waiting(pid);
            let right = match task.state {
                State::Running => running == 1 && !queued,
                State::Waiting => running == 0 && queued,
                State::Blocked | State::Dead => running == 0 && !queued,
            };
            if !right {
                let state = task.state;
                return Some(format!("{name}[{pid}] is {state:?}, runs on {running} CPUs, queued: {queued}"));
            }
            let may_run = idle.is_some_and(|cpu| task.sched.allowed() >> cpu & 1 == 1);
            waiting += usize::from(task.state == State::Waiting && may_run);
        }
        // A CPU that was idle and has been told to look is as good as running.
        let coming = self.cpus.iter().filter(|cpu| cpu.current.is_none() && cpu.resched.is_some()).count();
        idle.filter(|_| !attached && waiting > coming).map(|cpu| {
            format!("CPU {cpu} is idle while {waiting} tasks wait and {coming} CPUs come for them")
        })
    }
}

/// A task as the hardware knows it, which has 0 for the kernel.
fn owner(task: TaskId) -> u16 {
    task as u16 + 1
}

/// For each CPU, the CPUs of its cache domain and those of its node, as bits.
fn near(machine: &Machine) -> Vec<[u64; 2]> {
    let bits = |is_near: &dyn Fn(usize) -> bool| {
        (0..machine.cpus()).filter(|&other| is_near(other)).fold(0u64, |bits, other| bits | 1 << other)
    };
    let domain_of = |cpu: usize| cpu / machine.domain_cpus();
    (0..machine.cpus())
        .map(|cpu| {
            let in_domain = bits(&|other| domain_of(other) == domain_of(cpu));
            let in_node = bits(&|other| machine.node_of(other) == machine.node_of(cpu));
            [in_domain, in_node]
        })
        .collect()
}
