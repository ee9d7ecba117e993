//! Programs as they are handed to the simulation.

use crate::program::{Asks, Body, Cpu};
use hearth_machine::CpuSet;
use hearth_policy::snapshot::Class;

/// A program to start: some tasks that share memory and are measured together.
pub struct Application {
    /// Name in reports.
    pub name: String,
    /// When it starts, in nanoseconds since the machine did; its execution time is counted from there.
    pub start_ns: u64,
    /// The CPUs on which its tasks may run until they change it. Those that are not there count for
    /// nothing; if none is, tasks may run on all.
    pub cpus: CpuSet,
    /// The tasks that run from its start, each with a name; they may fork more.
    pub tasks: Vec<(String, Body)>,
    /// Nothing if its tasks are scheduled one by one.
    pub asked: Option<Asked>,
    /// Whether the tasks that run from its start are threads of the kernel's.
    pub is_kernel: bool,
    /// Whether it only runs beside others: the run is over when they have ended.
    pub is_background: bool,
    /// What it is for who makes up for unequal shares of caches; nothing if it is left alone.
    pub class: Option<Class>,
}

/// What a parallel program asks of the kernel.
pub struct Asked {
    /// How it is to be scheduled.
    pub asks: Asks,
    /// The most CPUs that it can use at once.
    pub cpus: usize,
    /// Is called with the number of CPUs that it has, whenever that changes; nothing if it is not told.
    pub told: Option<Box<dyn Fn(usize)>>,
}

impl Application {
    /// An application without tasks yet, which starts with the machine.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            start_ns: 0,
            cpus: CpuSet::ALL,
            tasks: Vec::new(),
            asked: None,
            is_kernel: false,
            is_background: false,
            class: None,
        }
    }

    /// Adds a task.
    pub fn task(&mut self, name: &str, body: impl FnOnce(&mut Cpu<'_>) + 'static) {
        self.tasks.push((name.into(), Box::new(body)));
    }
}
