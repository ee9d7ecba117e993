//! What is measured: operations in instructions, and waits in time of the guest.

use clap::ValueEnum;

/// How often a timer wakes each task whose waits are measured.
const PERIOD_US: usize = 2000;

/// An operation that `programs/bench.c` counts, or how long timers of `programs/tasks` wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Bench {
    /// One byte there and back between two processes
    Pipe,
    /// The same on one CPU
    PipePinned,
    /// Two threads of one CPU that yield
    Yield,
    /// Wake-up of a thread on an idle CPU
    Futex,
    /// fork, exit and wait
    Fork,
    /// How long a task waits after its timer, on idle CPUs
    WakeIdle,
    /// The same beside as many spinners as CPUs
    #[value(name = "wake-1")]
    Wake1,
    /// Beside twice as many
    #[value(name = "wake-2")]
    Wake2,
    /// Beside four times as many
    #[value(name = "wake-4")]
    Wake4,
}

impl Bench {
    pub const ALL: [Self; 9] = [
        Self::Pipe,
        Self::PipePinned,
        Self::Yield,
        Self::Futex,
        Self::Fork,
        Self::WakeIdle,
        Self::Wake1,
        Self::Wake2,
        Self::Wake4,
    ];
    pub const SMALL: [Self; 2] = [Self::Yield, Self::WakeIdle];

    /// As the guest's output has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::PipePinned => "pipe-pinned",
            Self::Yield => "yield",
            Self::Futex => "futex",
            Self::Fork => "fork",
            Self::WakeIdle => "wake-idle",
            Self::Wake1 => "wake-1",
            Self::Wake2 => "wake-2",
            Self::Wake4 => "wake-4",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Pipe => "pipe round trip",
            Self::PipePinned => "pipe on one CPU",
            Self::Yield => "yield",
            Self::Futex => "futex wake",
            Self::Fork => "fork+exit+wait",
            Self::WakeIdle => "wait, idle",
            Self::Wake1 => "wait, 1 each",
            Self::Wake2 => "wait, 2 each",
            Self::Wake4 => "wait, 4 each",
        }
    }

    /// Spinners a CPU beside the tasks whose waits are measured.
    fn spinners_each(self) -> Option<usize> {
        match self {
            Self::WakeIdle => Some(0),
            Self::Wake1 => Some(1),
            Self::Wake2 => Some(2),
            Self::Wake4 => Some(4),
            _ => None,
        }
    }

    /// What measures it in a guest of so many CPUs: a line `bench=NAME state=S KEY=VALUE`.
    pub fn command(self, cpus: usize) -> String {
        let name = self.name();
        let Some(each) = self.spinners_each() else { return format!("bench {name}") };
        let length_ms = 8000 / cpus;
        format!(
            "echo bench={name} $(tasks sleepers {} {length_ms} {} {PERIOD_US}) state=$(cat /sys/kernel/sched_ext/state)",
            cpus / 2,
            each * cpus
        )
    }

    /// The key of its value.
    pub fn key(self) -> &'static str {
        if self.spinners_each().is_some() { "p99_ns" } else { "instructions_per_op" }
    }

    /// A value with its unit: instructions, or milliseconds.
    pub fn show(self, value: f64) -> String {
        if self.spinners_each().is_some() { format!("{:.3} ms", value / 1e6) } else { format!("{value:.0}") }
    }
}
