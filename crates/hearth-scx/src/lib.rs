//! sched_ext's side of a kernel: dispatch queues, run queues, idle CPUs, kicks, task storage, and the paths
//! that call the scheduler, in the kernel's order and with its locks (kernel/sched/ext.c and core.c). What
//! the kernel refuses is refused here, in its words.
//!
//! Two machines are built on it. Where other CPUs could go on in between, it asks its [`Host`]: the
//! simulated machine (`hearth-sim`) lets nobody, so that each path is one step of a deterministic run;
//! `hearth-races` lets anybody. A CPU has one of three things to do: a task of sched_ext, the stopper
//! (which moves tasks off a CPU that their mask has lost), or a higher class, of which only this is known
//! here: that it holds the CPU.
//!
//! Times are picoseconds, as hosts keep them; CPUs are numbered from 0, at most [`MAX_CPUS`](hearth_machine::MAX_CPUS).

mod change;
mod hotplug;
mod interrupts;
mod kernel;
mod kfuncs;
mod queues;
mod state;
mod switch;
mod task;
mod wake;

use hearth_machine::CpuSet;
pub use kernel::Kernel;
pub use state::{Current, Scx, Shape};
pub use task::{Pid, Task};

/// What differs between the kernels that are built on this one.
pub trait Host: 'static {
    /// The time that a CPU has, in ps.
    fn now_ps(&self, cpu: usize) -> u64;

    /// Which of several CPUs a search for any of them finds; there is one at least.
    fn choose(&self, cpus: CpuSet) -> usize;

    /// Other CPUs may go on here, for as long as they like.
    fn gap(&self) {}

    /// A CPU waits for what another one does: others go on. Not called where there are no gaps.
    fn wait(&self) {}
}
