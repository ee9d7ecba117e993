//! What a CPU has beside its run queue: timers, ticks, and higher classes that take it for a while.

use crate::host::Interleaved;
use hearth_scx::{Current, Kernel, Pid};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

/// A CPU, apart from what the kernel knows of it.
struct Cpu {
    next_tick_ns: Cell<u64>,
    /// Nothing to do: idle, or at a task's next step while nothing new may begin.
    is_settled: Cell<bool>,
    /// Until when a higher class holds it.
    held_until_ns: Cell<u64>,
}

/// When a timer is due, on which CPU, and what it does.
type Timer = (u64, usize, Pid);

/// The kernel and its CPUs.
pub(crate) struct Machine {
    kernel: Kernel<Interleaved>,
    cpus: Vec<Cpu>,
    timers: RefCell<BTreeSet<Timer>>,
    /// CPU time that tasks have in a higher class until their timer brings them back.
    away_ns: RefCell<BTreeMap<Pid, u64>>,
    tick_ns: u64,
}

impl Deref for Machine {
    type Target = Kernel<Interleaved>;

    fn deref(&self) -> &Kernel<Interleaved> {
        &self.kernel
    }
}

impl Machine {
    /// Ticks are spread over a tick's time unless `ticks_at_once`.
    pub(crate) fn new(kernel: Kernel<Interleaved>, tick_ns: u64, ticks_at_once: bool) -> Self {
        let cpus = kernel.cpus() as u64;
        let cpu = |cpu| Cpu {
            next_tick_ns: Cell::new(tick_ns + if ticks_at_once { 0 } else { tick_ns * cpu / cpus }),
            is_settled: Cell::new(false),
            held_until_ns: Cell::new(0),
        };
        Self {
            kernel,
            cpus: (0..cpus).map(cpu).collect(),
            timers: RefCell::default(),
            away_ns: RefCell::default(),
            tick_ns,
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.host.now_ns.get()
    }

    pub(crate) fn random(&self, end: u32) -> u32 {
        self.host.random(end)
    }

    /// Time passes, less than 20 us.
    pub(crate) fn spend_time(&self) {
        self.host.now_ns.set(self.now_ns() + u64::from(self.random(20_000)));
    }

    /// Nothing happens before the next timer; false if there is none.
    pub(crate) fn skip_to_timer(&self) -> bool {
        let next = self.timers.borrow().first().map(|timer| timer.0);
        next.inspect(|&next_ns| self.host.now_ns.set(next_ns.max(self.now_ns()))).is_some()
    }

    pub(crate) fn settle(&self, cpu: usize, settled: bool) {
        self.cpus[cpu].is_settled.set(settled);
    }

    /// Whether no CPU has anything to do but what tasks may begin.
    pub(crate) fn is_at_rest(&self) -> bool {
        (0..self.cpus.len()).all(|cpu| {
            let is_pending = self.needs_resched(cpu)
                || self.is_released(cpu)
                || self.has_kicks(cpu)
                || self.cpus[cpu].next_tick_ns.get() <= self.now_ns();
            self.cpus[cpu].is_settled.get() && !is_pending
        })
    }

    fn is_released(&self, cpu: usize) -> bool {
        self.is_held(cpu) && self.cpus[cpu].held_until_ns.get() <= self.now_ns()
    }

    /// All CPUs have a tick.
    pub(crate) fn tick_all(&self) {
        self.cpus.iter().for_each(|cpu| cpu.next_tick_ns.set(self.now_ns()));
    }

    /// Time passes in which nobody does anything.
    pub(crate) fn pass(&self, ns: u64) {
        self.host.now_ns.set(self.now_ns() + ns);
    }

    /// Wakes a task later, by a timer of this CPU.
    pub(crate) fn wake_after(&self, ns: u64, cpu: usize, pid: Pid) {
        self.timers.borrow_mut().insert((self.now_ns() + ns, cpu, pid));
    }

    /// The current task sleeps for a while.
    pub(crate) fn sleep(&self, cpu: usize, ns: u64) {
        if let Current::Task(pid) = self.current(cpu) {
            self.block(cpu);
            self.wake_after(ns, cpu, pid);
        }
    }

    /// A task that waits goes to a higher class, where it has had `ran_ns` of CPU time when a timer of this
    /// CPU brings it back.
    pub(crate) fn visit_class(&self, pid: Pid, cpu: usize, ran_ns: u64) {
        if self.task(pid).waits_since_ps().is_some() && self.leave_class(pid) {
            self.away_ns.borrow_mut().insert(pid, ran_ns);
            self.wake_after(ran_ns, cpu, pid);
        }
    }

    /// A higher class takes a CPU for a while.
    pub(crate) fn hold_for(&self, cpu: usize, ns: u64) {
        if !self.is_offline(cpu) {
            self.cpus[cpu].held_until_ns.set(self.now_ns() + ns);
            self.hold(cpu);
        }
    }

    pub(crate) fn is_offline(&self, cpu: usize) -> bool {
        !self.online().has(cpu)
    }

    /// A CPU shall be left by all tasks; its timers go to another.
    pub(crate) fn leave_cpu(&self, cpu: usize, other: usize) {
        self.cpus[cpu].held_until_ns.set(u64::MAX);
        self.hold(cpu);
        let timers = self.timers.take();
        let moved = timers.into_iter().map(|(at, on, pid)| (at, if on == cpu { other } else { on }, pid));
        self.timers.replace(moved.collect());
    }

    /// A CPU that was left is there again.
    pub(crate) fn come_to_cpu(&self, cpu: usize) {
        self.cpus[cpu].held_until_ns.set(0);
        self.let_go(cpu);
    }

    /// What waits for interrupts to be on: kicks of the last callbacks, timers, the tick. While
    /// `is_frozen`, no timer.
    pub(crate) fn interrupts(&self, cpu: usize, is_frozen: bool) {
        self.kicks(cpu);
        let due = self.timers.borrow().iter().find(|timer| timer.1 == cpu).copied();
        if let Some(timer) = due.filter(|timer| timer.0 <= self.now_ns() && !is_frozen) {
            self.timers.borrow_mut().remove(&timer);
            let ran_ns = self.away_ns.borrow_mut().remove(&timer.2).unwrap_or_default();
            self.join_class(timer.2, ran_ns);
            self.wake(timer.2, 0);
            self.kicks(cpu);
        }
        if self.is_released(cpu) {
            self.let_go(cpu);
        }
        if self.cpus[cpu].next_tick_ns.get() <= self.now_ns() {
            self.cpus[cpu].next_tick_ns.set(self.now_ns() + self.tick_ns);
            self.tick(cpu);
            self.kicks(cpu);
        }
    }
}
