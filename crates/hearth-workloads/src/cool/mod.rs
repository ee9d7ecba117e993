//! Task-parallel programs, and the runtime that their processes share: that of COOL, the language in which
//! the parallel programs of the second paper are written.
//!
//! A program starts as one process, its *master*, which forks the others and sets data up in memory. In the
//! parallel section it puts *tasks* into queues, one for each process; a task says in whose queue it belongs,
//! which is where its data is. A process does the tasks of its own queue, oldest first, and takes one from
//! another's if it has lain there longer than it would take to wake the owner. Who finds nothing spins, and
//! blocks ([`hearth_sim::two_phase`]). Data may be distributed explicitly, to the memories of the processes
//! whose tasks work on it; else a page is where it was touched first, which is where the master runs.
//!
//! *Process control*: a program may be told how many CPUs it has. Each process compares that number with the
//! number of active processes when it has done a task, and suspends itself or resumes another one. The
//! master is never suspended.
//!
//! (Chandra, Gupta and Hennessy, "Data Locality and Load Balancing in COOL", PPoPP 1993; Tucker, "Efficient
//! Scheduling on Multiprogrammed Shared-Memory Multiprocessors", Stanford 1993; Chandra, Devine, Verghese,
//! Gupta and Rosenblum, "Scheduling and Page Migration for Multiprocessor Compute Servers", ASPLOS 1994,
//! sections 2.1 and 5.2.)

mod process;
mod queue;
mod team;
#[cfg(test)]
mod tests;

pub use process::Process;

use crate::{Built, Check};
use hearth_machine::CpuSet;
use hearth_sim::memory::Memory;
use hearth_sim::program::{Application, Asked, Asks, Cpu};
use hearth_sim::two_phase::PATIENCE_CYCLES;
use std::rc::Rc;
use team::Team;

/// How a task-parallel program is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// Processes that it starts.
    pub processes: usize,
    /// The CPUs on which they may run. Those that are not there count for nothing.
    pub cpus: CpuSet,
    /// Whether each process is attached to one of these CPUs, in turn.
    pub attached: bool,
    /// Whether data is distributed explicitly, to where the processes are if they are attached so.
    pub distributed: bool,
    /// The number of CPUs that the program is told it has, until the kernel knows better; nothing if it is
    /// not told.
    pub told: Option<usize>,
    /// How it asks to be scheduled; nothing if its processes are scheduled one by one.
    pub asks: Option<Asks>,
    /// How many cycles a task waits for its own process before another may take it.
    pub patience_cycles: u64,
}

/// How parallel programs share a machine, which is up to them and the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Their processes are scheduled one by one.
    #[default]
    OneByOne,
    /// Each is a gang. Who distributes its data does so as if alone on the machine.
    Gangs,
    /// Each has a processor set.
    Sets,
    /// Each has a processor set, and is told its size.
    ProcessControl,
}

impl Sharing {
    fn asks(self) -> Option<Asks> {
        match self {
            Sharing::OneByOne => None,
            Sharing::Gangs => Some(Asks::Gang),
            Sharing::Sets | Sharing::ProcessControl => Some(Asks::Set),
        }
    }
}

impl Default for Invocation {
    /// Sixteen processes that run wherever they are put, as under a scheduler that knows nothing of programs.
    fn default() -> Self {
        Self {
            processes: 16,
            cpus: CpuSet::ALL,
            attached: false,
            distributed: false,
            told: None,
            asks: None,
            patience_cycles: PATIENCE_CYCLES,
        }
    }
}

impl Invocation {
    /// A program of so many processes among others. `distributes`: whether it distributes its data where each
    /// process stays on one CPU.
    pub fn among_others(processes: usize, distributes: bool, sharing: Sharing) -> Self {
        Self {
            processes,
            distributed: distributes && sharing == Sharing::Gangs,
            told: (sharing == Sharing::ProcessControl).then_some(processes),
            asks: sharing.asks(),
            ..Self::default()
        }
    }

    /// The CPU of a process, if it is attached.
    fn cpu_of(&self, process: usize) -> usize {
        self.cpus.iter().nth(process % self.cpus.len().max(1)).unwrap_or_default()
    }
}

/// A program of this kind: what its master does.
pub type Master = Box<dyn FnOnce(&mut Cpu<'_>, &Process)>;

/// Makes an application of a master.
pub fn built(name: &str, memory: &Memory, invocation: &Invocation, master: Master, check: Check) -> Built {
    let team = Rc::new(Team::new(memory, name, invocation));
    let mut application = Application::new(name);
    application.cpus = invocation.cpus;
    application.asked = invocation.asks.map(|asks| {
        let told = Rc::clone(&team);
        let told: Box<dyn Fn(usize)> = Box::new(move |cpus| told.allot(cpus));
        Asked { asks, cpus: invocation.processes, told: invocation.told.map(|_| told) }
    });
    application.task(&team.name(0), move |cpu| Process::first(&team, cpu, master));
    Built::new(application, check)
}
