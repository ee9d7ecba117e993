//! What the emulator's plugin counted: the JSON file that it writes, and that others read.
//!
//! ```text
//! Report                  one run of the emulator
//!   Region                from a BEGIN to its END, caches cold at its beginning
//!     cpus: [Counts]      by CPU, whoever ran there
//!     tasks: [Task]       by task, wherever it ran: `user` and `kernel`
//! ```
//! The counts of a region's tasks add up to those of its CPUs.

use serde::{Deserialize, Serialize};
use std::ops::{AddAssign, Sub};

/// The version of the format.
pub const SCHEMA: u32 = 2;

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name of the machine whose caches were simulated.
    pub machine: String,
    /// Picoseconds of a cycle of that machine: what an instruction takes when nothing stalls it.
    pub cycle_ps: u64,
    /// In order of their ends. A region that the guest never ended is the last.
    pub regions: Vec<Region>,
}

/// A stretch of the run that the guest marked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Region {
    /// The name that the guest gave.
    pub name: String,
    /// How far the guest's clock moved.
    pub guest_ns: u64,
    /// Whether the guest said that it ended. Else it was counted to the end of the run.
    pub is_ended: bool,
    /// By number of the CPU.
    pub cpus: Vec<Counts>,
    /// In order of pid; the idle tasks of all CPUs are one, with pid 0, and come first.
    pub tasks: Vec<Task>,
}

/// A thread of the guest, or a thread of its kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Task {
    /// The kernel's number of the thread.
    pub pid: u32,
    /// Its name, as it was when it last stopped running; `idle` for pid 0.
    pub comm: String,
    /// What its own code did.
    pub user: Counts,
    /// What the kernel did while it ran: on its behalf, or in interrupts.
    pub kernel: Counts,
    /// How often it began to run.
    pub switches: u64,
    /// Of these, on another CPU than the last time. Not counted for pid 0.
    pub cpu_moves: u64,
    /// Of these, on a CPU with another last-level cache.
    pub domain_moves: u64,
    /// Of these, on a CPU of another memory node.
    pub node_moves: u64,
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Event counts.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
            /// The misses of the last level, by cause.
            pub causes: Causes,
        }

        impl Counts {
            /// The counts one after the other, in the order in which they are declared, causes last: as a program
            /// of the guest gets them.
            pub fn words(&self) -> Vec<u64> {
                let Causes { first_touch, own, other, coherence, moved } = self.causes;
                vec![$(self.$name,)* first_touch, own, other, coherence, moved]
            }
        }

        impl Sub for Counts {
            type Output = Self;
            fn sub(self, earlier: Self) -> Self {
                Self { $($name: self.$name - earlier.$name,)* causes: self.causes - earlier.causes }
            }
        }

        impl AddAssign for Counts {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
                self.causes += other.causes;
            }
        }
    };
}

counts! {
    /// Instructions executed.
    instructions,
    /// Loads; one that spans two lines is two.
    loads,
    /// Stores; one that spans two lines is two.
    stores,
    /// Fetches of code, one for each line of each block of code that was executed.
    fetches,
    /// Loads and stores that the first level did not have.
    l1d_misses,
    /// Fetches that the first level did not have.
    l1i_misses,
    /// Of the first level's misses: served by the second.
    l2_hits,
    /// Served by the last level.
    llc_hits,
    /// Served by another CPU's cache on the same memory node.
    cache_local,
    /// Served by a cache of another memory node.
    cache_remote,
    /// Served by the memory of the CPU's own node.
    memory_local,
    /// Served by the memory of another node.
    memory_remote,
    /// Stores to a line that hit, but that other caches held and had to be told of.
    upgrades,
    /// Lines that the CPU lost because another wrote them.
    invalidations,
    /// Modified lines written back to memory.
    write_backs,
    /// Picoseconds beyond a first-level hit that references took, and that `PAUSE` did.
    stall_ps,
    /// Of these, picoseconds of waiting for a busy bus or memory. 0 without simulated time.
    queue_ps,
}

/// Misses of the last level by what became of the line since that cache last had it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Causes {
    /// It was never there.
    pub first_touch: u64,
    /// The same task replaced it.
    pub own: u64,
    /// Another task replaced it.
    pub other: u64,
    /// Another CPU wrote it.
    pub coherence: u64,
    /// The task came from another CPU, and its lines are elsewhere.
    pub moved: u64,
}

impl Sub for Causes {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            first_touch: self.first_touch - earlier.first_touch,
            own: self.own - earlier.own,
            other: self.other - earlier.other,
            coherence: self.coherence - earlier.coherence,
            moved: self.moved - earlier.moved,
        }
    }
}

impl AddAssign for Causes {
    fn add_assign(&mut self, other: Self) {
        self.first_touch += other.first_touch;
        self.own += other.own;
        self.other += other.other;
        self.coherence += other.coherence;
        self.moved += other.moved;
    }
}

impl Counts {
    /// References that the CPU's caches did not have: those of memory and of other caches.
    pub fn llc_misses(&self) -> u64 {
        self.cache_local + self.cache_remote + self.memory_local + self.memory_remote
    }

    /// What it all took: a cycle for each instruction, and the stalls.
    pub fn time_ps(&self, cycle_ps: u64) -> u64 {
        self.instructions * cycle_ps + self.stall_ps
    }

    /// What a kernel's counters have: cycles, instructions, misses of the last level.
    pub fn counters(&self, cycle_ps: u64) -> [u64; 3] {
        [self.time_ps(cycle_ps) / cycle_ps, self.instructions, self.llc_misses()]
    }
}

impl Task {
    /// All that some tasks did, as if one had: it has no pid and no name.
    pub fn sum<'a>(tasks: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for task in tasks {
            sum.user += task.user;
            sum.kernel += task.kernel;
            sum.switches += task.switches;
            sum.cpu_moves += task.cpu_moves;
            sum.domain_moves += task.domain_moves;
            sum.node_moves += task.node_moves;
        }
        sum
    }

    /// What its own code and the kernel did, together.
    pub fn total(&self) -> Counts {
        let mut total = self.user;
        total += self.kernel;
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_its_file() {
        let counts = Counts { loads: 5, causes: Causes { own: 3, ..Causes::default() }, ..Counts::default() };
        let task = Task { pid: 7, comm: "walk".into(), user: counts, ..Task::default() };
        let region =
            Region { name: "r".into(), guest_ns: 9, is_ended: true, cpus: vec![counts], tasks: vec![task] };
        let report = Report { schema: SCHEMA, machine: "m".into(), cycle_ps: 333, regions: vec![region] };
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }

    #[test]
    fn time_is_a_cycle_for_each_instruction_and_the_stalls() {
        let counts = Counts { instructions: 10, stall_ps: 5, ..Counts::default() };
        assert_eq!(counts.time_ps(500), 5005);
    }
}
