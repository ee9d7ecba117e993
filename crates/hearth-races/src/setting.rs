//! What is run, and what comes of it.

use std::fmt::{Display, Formatter};

/// Among equals a task that waits this long is forgotten: a second, as in the tests of real kernels.
const STARVED_NS: u64 = 1_000_000_000;
/// No task waits for longer, whatever the weights.
const HALF_THE_WATCHDOG_NS: u64 = 5_000_000_000;

/// What is run. The same setting leads to the same run.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Number of tasks.
    pub tasks: usize,
    /// How long, in ns of the machine's time.
    pub duration_ns: u64,
    /// One in so many accesses lets other CPUs go on.
    pub switch_one_in: u32,
    /// Of everything random.
    pub seed: u64,
    /// Whether tasks change their weights and go to a higher class and back, and higher classes take
    /// CPUs.
    pub unequal: bool,
    /// Whether all CPUs tick at once.
    pub ticks_at_once: bool,
    /// Whether CPUs go away and come back, and the scheduler is loaded anew each time.
    pub hotplug: bool,
    /// Whether a task that cannot run at once where it was inserted to run is enqueued anew, as kernels
    /// from 7.1 do when asked to.
    pub immediate: bool,
    /// Whether plans are published, with parts, homes and rows of time.
    pub plans: bool,
    /// Whether tasks declare data that they work on, now this and now that.
    pub fragments: bool,
    /// How long a task may wait.
    pub longest_wait_ns: u64,
    /// Whether the scheduler has a defect, for tests of the tests: no task leaves a queue.
    pub stalls: bool,
}

impl Setting {
    /// A run in which, by its seed, every fourth to every 512th access lets other CPUs go on.
    pub fn new(tasks: usize, duration_ns: u64, seed: u64) -> Self {
        Self {
            tasks,
            duration_ns,
            switch_one_in: 1 << (2 + seed % 8),
            seed,
            unequal: false,
            ticks_at_once: false,
            hotplug: false,
            immediate: false,
            plans: false,
            fragments: false,
            longest_wait_ns: STARVED_NS,
            stalls: false,
        }
    }

    /// A run of tasks whose weights and classes change, on CPUs that higher classes take. However
    /// unequal, none may wait for half of the watchdog's time.
    pub fn unequal(tasks: usize, duration_ns: u64, seed: u64) -> Self {
        Self {
            unequal: true,
            ticks_at_once: seed & 1 == 1,
            longest_wait_ns: HALF_THE_WATCHDOG_NS,
            ..Self::new(tasks, duration_ns, seed)
        }
    }

    /// The same, while plans come and go. Rows of time may keep a task waiting for as long as any may.
    pub fn with_plans(self) -> Self {
        Self { plans: true, longest_wait_ns: HALF_THE_WATCHDOG_NS, ..self }
    }
}

/// What a run without a violation told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Times that all CPUs were at rest.
    pub rests: u64,
    /// Of these, with a CPU idle beside a task that it could run, which a tick then mended.
    pub mended_by_tick: u64,
    /// How long a task waited at most.
    pub longest_wait_ns: u64,
    /// Times that a CPU went away or came back.
    pub restarts: u64,
}

/// What must not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The scheduler did what sched_ext ends it for.
    Refused(String),
    /// A task waited for longer than any may.
    Starved {
        /// Which.
        task: i32,
        /// When it was found out.
        at_ns: u64,
    },
    /// A CPU idles, and goes on to idle after every busy CPU had a tick, although a task waits that
    /// it could run.
    IdleBesideWork {
        /// The CPU.
        cpu: usize,
        /// The task.
        task: i32,
        /// When it was found out.
        at_ns: u64,
    },
    /// A queue seems empty although tasks wait in it.
    Hidden {
        /// The CPU whose queue it is.
        cpu: usize,
        /// Whether it is the queue of tasks that are pinned to the CPU.
        pinned: bool,
        /// When it was found out.
        at_ns: u64,
    },
    /// No CPU can go on.
    Deadlock {
        /// When it was found out.
        at_ns: u64,
    },
}

impl Display for Violation {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let ms = |ns: &u64| *ns as f64 / 1e6;
        match self {
            Self::Refused(why) => write!(f, "the kernel would end the scheduler: {why}"),
            Self::Starved { task, at_ns } => {
                write!(f, "at {} ms task {task} has waited for too long", ms(at_ns))
            }
            Self::IdleBesideWork { cpu, task, at_ns } => {
                write!(f, "at {} ms CPU {cpu} idles although task {task} waits", ms(at_ns))
            }
            Self::Hidden { cpu, pinned, at_ns } => {
                let tasks = if *pinned { "pinned" } else { "free" };
                write!(f, "at {} ms CPU {cpu} does not know that {tasks} tasks wait for it", ms(at_ns))
            }
            Self::Deadlock { at_ns } => write!(f, "at {} ms no CPU can go on", ms(at_ns)),
        }
    }
}

impl std::error::Error for Violation {}
