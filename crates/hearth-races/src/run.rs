//! Who of the CPUs goes on next, and whether all is well.

use crate::habits::{Habits, begin_unequal, turn};
use crate::host::{Interleaved, MOST_CPUS};
use crate::machine::Machine;
use crate::plans::Plans;
use crate::setting::{Outcome, Setting, Violation};
use crate::switch;
use corosensei::Coroutine;
use hearth_abi::native::{PF_KTHREAD, Scheduler, TaskStruct};
use hearth_abi::queue_of;
use hearth_machine::CpuSet;
use hearth_policy::Policy;
use hearth_scx::{Current, Kernel, Scx, Shape, Task};
use std::cell::Cell;
use std::io::{Error, ErrorKind};
use std::rc::Rc;

/// How often all CPUs are brought to rest, to see whether one of them idles beside work.
const REST_NS: u64 = 50_000_000;
/// A CPU may be stopped for this many turns of the others.
const LONGEST_STALL: u32 = 400;

/// Turns after which the CPUs have come to rest, or to their end, if they ever do.
const LONGEST_END: usize = 1_000_000;

/// One in so many rests, a CPU goes away or comes back.
const HOTPLUG_ONE_IN: u32 = 16;

/// One task of so many is the kernel's, if tasks are unequal: where it is bound to a CPU, rows do not count.
const KERNELS_OWN_ONE_IN: usize = 5;

type Cpu = Coroutine<(), (), ()>;

/// Loads the scheduler for the CPUs that are there.
type Load = Box<dyn Fn(CpuSet) -> Result<Scheduler, Error>>;

/// Runs a policy on a machine of at most 64 CPUs. The outer error is the loader's, or that of a setting
/// that cannot be run.
pub fn run(
    machine: &hearth_machine::Machine,
    policy: &Policy,
    setting: Setting,
) -> Result<Result<Outcome, Violation>, Error> {
    check(machine, setting).map_err(|what| Error::new(ErrorKind::InvalidInput, what))?;
    let host = Interleaved::new(setting.switch_one_in, setting.seed);
    let shape = Shape { is_immediate: setting.immediate, ..Shape::new(machine) };
    let scx = Rc::new(Scx::new(host, shape));
    let load = loader(&scx, machine, policy, setting);
    let kernel = Kernel::new(&scx, load(scx.online())?);
    for task in 0..setting.tasks {
        let (pid, cpu) = (task as i32 + 1, task % machine.cpus());
        let racer = TaskStruct::new(pid, cpu, scx.online(), "racer");
        if setting.unequal && task % KERNELS_OWN_ONE_IN == 0 {
            racer.process_flags.set(PF_KTHREAD);
        }
        kernel.add_task(&Rc::new(racer), None);
    }
    let longest_idle_ns = policy.longest_idle_ns(machine).unwrap_or(0);
    let machine = Machine::new(kernel, machine.kernel.tick_ns, setting.ticks_at_once);
    if setting.unequal {
        begin_unequal(&machine);
    }
    for task in machine.tasks() {
        machine.wake_after(0, task.cpu(), task.pid());
    }
    let plans = setting.plans.then(|| Plans::new(&machine)).transpose()?;
    let mut run = Run::new(Rc::new(machine), setting, longest_idle_ns, load, plans);
    Ok(switch::with_accesses(&scx, || run.until(setting.duration_ns)))
}

fn loader(
    scx: &Rc<Scx<Interleaved>>,
    machine: &hearth_machine::Machine,
    policy: &Policy,
    setting: Setting,
) -> Load {
    let (scx, machine, policy) = (Rc::clone(scx), machine.clone(), policy.clone());
    Box::new(move |online| {
        let scheduler = Scheduler::load_interleaved(&scx, &policy, &machine, online, switch::access)?;
        if setting.stalls {
            scheduler.stall()?;
        }
        Ok(scheduler)
    })
}

fn check(machine: &hearth_machine::Machine, setting: Setting) -> Result<(), String> {
    match (machine.cpus(), setting) {
        (cpus, _) if cpus > MOST_CPUS => {
            Err(format!("{} has {cpus} CPUs; name a machine of at most {MOST_CPUS}", machine.name))
        }
        (_, Setting { tasks: 0, .. }) => Err("no tasks: nothing would happen; give at least 1".to_owned()),
        (_, Setting { switch_one_in: 0, .. }) => {
            Err("one in 0 accesses: give at least 1, for every access".to_owned())
        }
        _ => Ok(()),
    }
}

struct Run {
    machine: Rc<Machine>,
    load: Load,
    has_hotplug: bool,
    plans: Option<Plans>,
    longest_wait_ns: u64,
    /// For how long a CPU may idle beside work.
    longest_idle_ns: u64,
    /// How much of the time has passed while CPUs were watched that idle.
    passed_ns: u64,
    cpus: Vec<Cpu>,
    /// Turns for which a CPU is stopped.
    stalled: Vec<u32>,
    /// All CPUs shall come to rest: tasks do nothing new, and no time passes.
    is_resting: Rc<Cell<bool>>,
    /// CPUs shall end at their next turn: none may be left in the middle of the scheduler's code.
    is_over: Rc<Cell<bool>>,
    outcome: Outcome,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.is_over.set(true);
        for _ in 0..LONGEST_END {
            for cpu in self.cpus.iter_mut().filter(|cpu| !cpu.done()) {
                cpu.resume(());
                switch::leave();
            }
            if self.cpus.iter().all(Coroutine::done) {
                return;
            }
        }
        // They wait for each other for ever.
        std::mem::forget(std::mem::take(&mut self.cpus));
    }
}

impl Run {
    fn new(
        machine: Rc<Machine>,
        setting: Setting,
        longest_idle_ns: u64,
        load: Load,
        plans: Option<Plans>,
    ) -> Self {
        let (is_resting, is_over) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
        let habits = Habits::any(&machine, setting.unequal, setting.fragments);
        let longest_wait_ns = setting.longest_wait_ns;
        let cpu = |cpu| {
            let (machine, is_resting, is_over) =
                (Rc::clone(&machine), Rc::clone(&is_resting), Rc::clone(&is_over));
            Coroutine::new(move |yielder, ()| {
                switch::enter(yielder);
                machine.run_on(cpu);
                while !is_over.get() {
                    turn(&machine, cpu, habits, &is_resting);
                }
            })
        };
        let cpus = (0..machine.cpus()).map(cpu).collect();
        let stalled = vec![0; machine.cpus()];
        let (outcome, has_hotplug) = (Outcome::default(), setting.hotplug);
        Self {
            machine,
            load,
            has_hotplug,
            plans,
            longest_wait_ns,
            longest_idle_ns,
            passed_ns: 0,
            cpus,
            stalled,
            is_resting,
            is_over,
            outcome,
        }
    }

    fn until(&mut self, end_ns: u64) -> Result<Outcome, Violation> {
        let mut next_rest = REST_NS;
        while self.machine.now_ns() < end_ns + self.passed_ns {
            self.step()?;
            if let Some(plans) = &mut self.plans {
                plans.go_on(&self.machine);
            }
            if self.machine.now_ns() >= next_rest {
                next_rest = self.machine.now_ns() + REST_NS;
                self.check_waits()?;
                self.check_idle()?;
            }
        }
        Ok(self.outcome)
    }

    /// One CPU goes on, up to where it lets others.
    fn step(&mut self) -> Result<(), Violation> {
        let cpus = self.cpus.len() as u32;
        let machine = &self.machine;
        // All idle: on to the next timer.
        if machine.is_at_rest() && !machine.skip_to_timer() {
            return Err(Violation::Deadlock { at_ns: machine.now_ns() });
        }
        let cpu = machine.random(cpus) as usize;
        if self.stalled[cpu] > 0 {
            self.stalled[cpu] -= 1;
            return Ok(());
        }
        if machine.random(1000) == 0 && !self.is_resting.get() {
            self.stalled[cpu] = machine.random(LONGEST_STALL);
        }
        self.resume(cpu)
    }

    fn resume(&mut self, cpu: usize) -> Result<(), Violation> {
        self.cpus[cpu].resume(());
        switch::leave();
        self.machine.failure().map_or(Ok(()), |error| Err(Violation::Refused(error)))
    }

    fn check_waits(&mut self) -> Result<(), Violation> {
        let at_ns = self.machine.now_ns();
        for task in self.machine.tasks() {
            let since_ns = task.waits_since_ps().filter(|_| !self.is_held(&task)).map(|ps| ps / 1000);
            let waited = since_ns.map_or(0, |since_ns| at_ns.saturating_sub(since_ns));
            if waited > self.longest_wait_ns {
                return Err(Violation::Starved { task: task.pid(), at_ns });
            }
            self.outcome.longest_wait_ns = self.outcome.longest_wait_ns.max(waited);
        }
        Ok(())
    }

    /// Whether a higher class holds the only CPU that it may run on.
    fn is_held(&self, task: &Task) -> bool {
        let cpus = self.machine.cpus_open_to(task);
        cpus.len() == 1 && cpus.lowest().is_some_and(|cpu| self.machine.current(cpu) == Current::Higher)
    }

    /// With all CPUs at rest, none idles beside work that it could do.
    fn check_idle(&mut self) -> Result<(), Violation> {
        self.is_resting.set(true);
        self.rest()?;
        self.outcome.rests += 1;
        self.check_heads()?;
        if self.machine.idle_beside_work().is_some() {
            self.outcome.mended_by_tick += 1;
            self.tick_until_none_idles()?;
        }
        if self.has_hotplug && self.machine.random(HOTPLUG_ONE_IN) == 0 {
            self.change_cpus()?;
        }
        self.is_resting.set(false);
        (0..self.cpus.len()).for_each(|cpu| self.machine.settle(cpu, false));
        Ok(())
    }

    /// After the time for which a CPU may idle beside a task, ticks tell idle CPUs of the first tasks that wait.
    fn tick_until_none_idles(&mut self) -> Result<(), Violation> {
        let ticks = if self.longest_idle_ns > 0 { 1 + self.cpus.len() } else { 1 };
        for _ in 0..ticks {
            self.machine.pass(self.longest_idle_ns);
            self.passed_ns += self.longest_idle_ns;
            self.machine.tick_all();
            self.rest()?;
            if self.machine.idle_beside_work().is_none() {
                return Ok(());
            }
        }
        self.machine.idle_beside_work().map_or(Ok(()), |(cpu, task)| {
            Err(Violation::IdleBesideWork { cpu, task, at_ns: self.machine.now_ns() })
        })
    }

    /// A CPU goes away or comes back, with all CPUs at rest.
    fn change_cpus(&mut self) -> Result<(), Violation> {
        let cpu = self.machine.random(self.cpus.len() as u32) as usize;
        let goes_away = !self.machine.is_offline(cpu);
        let before = self.machine.online();
        let online = if goes_away { before.without(cpu) } else { before.with(cpu) };
        let Some(first) = online.lowest() else { return Ok(()) };
        // The kernel waits for these.
        if goes_away && self.machine.tasks().iter().any(|task| task.is_pinned() && task.cpu() == cpu) {
            return Ok(());
        }
        if goes_away {
            self.machine.leave_cpu(cpu, first);
            self.rest()?;
        }
        let scheduler = (self.load)(online).map_err(|error| Violation::Refused(error.to_string()))?;
        self.machine.restart(first, online, scheduler);
        if let Some(plans) = &mut self.plans {
            *plans = Plans::new(&self.machine).map_err(|error| Violation::Refused(error.to_string()))?;
        }
        if !goes_away {
            self.machine.come_to_cpu(cpu);
        }
        self.outcome.restarts += 1;
        self.rest()
    }

    fn check_heads(&self) -> Result<(), Violation> {
        let refused = |error: Error| Violation::Refused(error.to_string());
        for cpu in 0..self.cpus.len() {
            for pinned in [false, true] {
                let waiting = self.machine.waiting_in(queue_of(cpu, pinned));
                if waiting.is_some_and(|waiting| waiting > 0)
                    && !self.machine.scheduler().has_head(cpu, pinned).map_err(refused)?
                {
                    return Err(Violation::Hidden { cpu, pinned, at_ns: self.machine.now_ns() });
                }
            }
        }
        Ok(())
    }

    fn rest(&mut self) -> Result<(), Violation> {
        self.stalled.fill(0);
        for _ in 0..LONGEST_END * self.cpus.len() {
            if self.machine.is_at_rest() {
                return Ok(());
            }
            let cpu = self.machine.random(self.cpus.len() as u32) as usize;
            self.resume(cpu)?;
        }
        Err(Violation::Deadlock { at_ns: self.machine.now_ns() })
    }
}
