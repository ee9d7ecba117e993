//! What no kernel may do, and what its watchdog finds.

use super::{Kernel, State, Task};
use crate::options::Options;
use crate::program::TaskId;
use hearth_machine::Machine;
use hearth_policy::Policy;
use std::fmt;

/// Looks after each step for what no kernel may do: lose a task, run it twice, let it wait for too long, or
/// leave a CPU idle beside a task that may run there, for longer than the policy lets it.
pub(crate) struct Audit {
    longest_wait_ns: u64,
    /// None: it may.
    longest_idle_ns: Option<u64>,
    /// Whether it may for a time: a CPU beside one task, as long as both go on. Else no CPU may, beside any.
    counts_each: bool,
    /// Since when any CPU idles beside work.
    idles_since_ps: Option<u64>,
    /// By CPU: since when it idles.
    idle_since_ps: Vec<Option<u64>>,
}

impl Audit {
    pub(crate) fn new(options: &Options, policy: &Policy, machine: &Machine) -> Self {
        let by_policy_ns = policy.longest_idle_ns(machine);
        Self {
            longest_wait_ns: options.longest_wait_ns,
            longest_idle_ns: by_policy_ns.map(|ns| ns.saturating_add(options.longest_idle_ns)),
            counts_each: by_policy_ns.is_some_and(|ns| ns > 0),
            idles_since_ps: None,
            idle_since_ps: vec![None; machine.cpus()],
        }
    }

    /// What it finds, if anything.
    pub(crate) fn look(&mut self, kernel: &Kernel, now_ps: u64) -> Option<String> {
        if let Some((task, waited_s)) = kernel.waits_for(now_ps, self.longest_wait_ns) {
            return Some(format!("{} has waited for {waited_s:.3} s", task.scx.label()));
        }
        let misplaced = (0..kernel.tasks.len()).find_map(|task| kernel.is_out_of_place(task));
        misplaced.or_else(|| self.look_for_idle(kernel, now_ps))
    }

    fn look_for_idle(&mut self, kernel: &Kernel, now_ps: u64) -> Option<String> {
        let longest_ps = self.longest_idle_ns?.saturating_mul(1000);
        if self.counts_each {
            return self.look_for_each(kernel, now_ps, longest_ps);
        }
        let idles = kernel.idles_beside_work();
        let Some(idles) = idles else {
            self.idles_since_ps = None;
            return None;
        };
        let since_ps = *self.idles_since_ps.get_or_insert(now_ps);
        (now_ps - since_ps >= longest_ps).then(|| idles.to_string())
    }

    fn look_for_each(&mut self, kernel: &Kernel, now_ps: u64, longest_ps: u64) -> Option<String> {
        for (cpu, since) in self.idle_since_ps.iter_mut().enumerate() {
            *since = if kernel.idles(cpu) { since.or(Some(now_ps)) } else { None };
        }
        let longest_idle = |task: &Task| {
            let waits_since_ps = is_free(task).then(|| task.scx.waits_since_ps()).flatten()?;
            let open = self.idle_since_ps.iter().enumerate().filter(|(cpu, _)| task.scx.may_run_on(*cpu));
            open.filter_map(|(_, since)| *since)
                .map(|since| now_ps.saturating_sub(since.max(waits_since_ps)))
                .max()
        };
        let beside = |task: &&Task| longest_idle(task).is_some_and(|ps| ps > longest_ps);
        kernel
            .tasks
            .iter()
            .find(beside)
            .map(|task| format!("a CPU idles for too long beside {}", task.scx.label()))
    }
}

/// A CPU that is idle beside work.
struct Idles {
    cpu: usize,
    waiting: usize,
    coming: usize,
}

impl fmt::Display for Idles {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, waiting, coming } = self;
        write!(out, "CPU {cpu} is idle while {waiting} tasks wait and {coming} CPUs come for them")
    }
}

/// One that declares what it works on may wait for its data.
fn is_free(task: &Task) -> bool {
    task.scx.sched.declared.get() == 0
}

impl Kernel {
    /// What a task does.
    pub(crate) fn state(&self, id: TaskId) -> State {
        let task = &self.tasks[id];
        if task.is_dead {
            State::Dead
        } else if task.scx.sched.on_cpu.get() != 0 {
            State::Running
        } else if task.scx.waits_since_ps().is_some() || task.is_higher() && self.higher.has(id) {
            State::Waiting
        } else {
            State::Blocked
        }
    }

    /// A runnable task that has not run for the watchdog's time, if there is one.
    pub(crate) fn stalled(&self, now_ps: u64) -> Option<String> {
        self.waits_for(now_ps, self.timeout_ns()).map(|(task, waited_s)| {
            let lost = if task.scx.is_in_queue() { "" } else { "; it is in no dispatch queue" };
            format!("runnable task stall ({} failed to run for {waited_s:.3}s{lost})", task.scx.label())
        })
    }

    /// A task of sched_ext that has waited for longer than this, and for how many seconds.
    fn waits_for(&self, now_ps: u64, longest_ns: u64) -> Option<(&Task, f64)> {
        self.tasks.iter().find_map(|task| {
            let waited_ps = now_ps.saturating_sub(task.scx.waits_since_ps()?);
            (waited_ps / 1000 > longest_ns).then_some((task, waited_ps as f64 / 1e12))
        })
    }

    fn is_out_of_place(&self, id: TaskId) -> Option<String> {
        let task = &self.tasks[id];
        let running = self.cpus.iter().filter(|cpu| cpu.current == Some(id)).count();
        let (state, queued) = (self.state(id), task.scx.is_in_queue());
        let right = match state {
            State::Running => running == 1 && !queued,
            State::Waiting => running == 0 && queued != task.is_higher(),
            State::Blocked | State::Dead => running == 0 && !queued,
        };
        (!right)
            .then(|| format!("{} is {state:?}, runs on {running} CPUs, queued: {queued}", task.scx.label()))
    }

    fn idles(&self, cpu: usize) -> bool {
        self.scx.online().has(cpu) && !self.is_active(cpu)
    }

    fn idles_beside_work(&self) -> Option<Idles> {
        // A CPU that was idle and has been told to look is as good as running.
        let coming = self.cpus.iter().filter(|cpu| cpu.current.is_none() && cpu.resched.is_some()).count();
        (0..self.cpus.len()).filter(|cpu| self.idles(*cpu)).find_map(|cpu| {
            let waits = |task: &&Task| task.scx.waits_since_ps().is_some() && task.scx.may_run_on(cpu);
            let waiting = self.tasks.iter().filter(|task| is_free(task)).filter(waits).count();
            (waiting > coming).then_some(Idles { cpu, waiting, coming })
        })
    }
}
