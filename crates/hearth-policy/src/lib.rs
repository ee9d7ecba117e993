//! What to do: policies as small tables of numbers.
//!
//! A [`Policy`] is read from TOML (`policies/*.toml`), or is one of the presets. The scheduler
//! (`bpf/`) ranks the tasks that a CPU may run next by
//!
//! ```text
//! rank(task, cpu) = usage(task) - credit(task, cpu)             the smallest runs next
//! ```
//!
//! where `usage` is the CPU time that the task has had, in nanoseconds, and `credit` is what
//! [`Credit`] grants it for the warmth that it may find on that CPU. A larger credit keeps a task
//! longer where it is; no task falls behind its fair share by more than the sum of its credits and
//! one quantum.
//!
//! Beside these constants, a [`Controller`] plans while the scheduler runs: of what tasks did (a
//! [`Snapshot`]) its planners make a [`Plan`], which the scheduler follows until the next one.

mod check;
mod controller;
pub mod fragments;
pub mod isolation;
pub mod pages;
mod plan;
pub mod planners;
mod presets;
pub mod snapshot;
mod text;

use hearth_machine::located::{LocatedError, UnreadableError};
use hearth_machine::{Machine, MoveCosts};

pub use controller::{Controller, WrongPlan};
pub use plan::{
    MAX_PARTS, MAX_ROWS, MAX_TARGETS, Of, PageMove, PagePlan, PagePlanError, Plan, PlanError, ROW_NS, Rows,
    SHARE_PERMILLE, SLICE_PERMILLE, Stayed, Target,
};
pub use planners::Planner;
pub use presets::presets;
pub use snapshot::Snapshot;

/// A scheduling policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Name as given on the command line, for example `light`.
    pub name: String,
    /// One sentence for `hearth list policies`.
    pub description: String,
    /// How CPU time received becomes an order.
    pub discipline: Discipline,
    /// How long a task runs before the CPU looks at its queue again.
    pub quantum_ns: u64,
    /// What warmth is worth.
    pub credit: Credit,
    /// Whether every task that last ran on a CPU has the `time` credit there, and not only the
    /// very last one, each less what has faded since it ran. Costs a scan of the CPU's queue.
    /// (Torrellas et al. 1995, section 5.4.)
    pub complex: bool,
    /// With `complex`: how much of the `time` credit is lost for each unit of time since the task
    /// last ran, in thousandths. 2000 loses 20 ms of credit in 10 ms. 0 otherwise.
    pub fade_permille: u32,
    /// Whether a task is bound to the CPU where it first ran, and with it those that it makes. For
    /// comparison only: it lets CPUs idle beside work.
    pub attached: bool,
    /// Under [`Discipline::Fair`]: whether a task moves to another cache only when staying has cost as much as
    /// moving would, and whether who wakes waits its turn.
    pub steady: bool,
    /// Where there is one run queue: every task's usage decays each time that this has passed.
    pub decay_ns: u64,
    /// Where there is one run queue: the most usage that a task is charged, if there is a most.
    pub saturation_ns: Option<u64>,
    /// Whose speed is not to depend on neighbours, and who pays for it. The simulator has no control groups,
    /// and ignores it.
    pub isolation: ClassNames,
}

/// Control groups that have a class, with all below them: a path in the hierarchy, a unit's name, or
/// `user:NAME`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassNames {
    /// Those of [`snapshot::Class::CacheFair`].
    pub cache_fair: Vec<String>,
    /// Those of [`snapshot::Class::BestEffort`].
    pub best_effort: Vec<String>,
}

/// How CPU time received becomes an order among tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// Clock ticks, never forgotten, and a queue for each CPU: round robin among tasks of one priority.
    Fixed,
    /// Virtual time: CPU time over weight, never forgotten; a task that slept is moved up.
    Fair,
    /// One run queue, and clock ticks that are halved, as in UNIX System V: who has had little lately comes
    /// first, and of equals who has waited longest.
    SystemV,
    /// The same as in 4.3BSD: what is left after a decay depends on the load.
    Bsd,
    /// None of Hearth's: what Linux's own scheduler does, on the simulated machine (`bpf/baseline/`).
    Kernel,
}

impl Discipline {
    /// All that Hearth's scheduler has.
    pub const ALL: [Discipline; 4] =
        [Discipline::SystemV, Discipline::Bsd, Discipline::Fixed, Discipline::Fair];

    /// Its name in a policy.
    pub fn name(self) -> &'static str {
        match self {
            Discipline::Fixed => "fixed",
            Discipline::Fair => "fair",
            Discipline::SystemV => "system-v",
            Discipline::Bsd => "4.3bsd",
            Discipline::Kernel => "kernel",
        }
    }

    /// Whether tasks wait in one queue, for all CPUs.
    pub fn has_run_queue(self) -> bool {
        matches!(self, Discipline::SystemV | Discipline::Bsd)
    }
}

/// How much earlier than its usage says a task counts on a CPU. Credits add up. What a steady policy leaves out, or
/// has as 0, follows from its quantum and from what moves cost on the machine: [`Policy::on`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credit {
    /// The task ran last on this CPU and nothing else has since (`a_t`).
    pub time_ns: u64,
    /// This CPU is the one where it last ran (`a_p`).
    pub processor_ns: u64,
    /// This CPU shares a last-level cache with that one.
    pub llc_ns: u64,
    /// This CPU is on the memory node where it last ran.
    pub node_ns: u64,
    /// The data fragment that it declares lives on this CPU: tasks of one fragment run in succession for as
    /// long. Rounded to a power of two; 0 ignores fragments.
    pub fragment_ns: u64,
}

impl Credit {
    /// The most that a task can have on one CPU.
    pub fn sum_ns(&self) -> u64 {
        let parts = [self.time_ns, self.processor_ns, self.llc_ns, self.node_ns, self.fragment_ns];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// CPU time that one point of a UNIX priority stands for: priority falls by one for two clock
/// ticks of 10 ms. (Torrellas et al. 1995, section 4: `prio = base + cpu / 2`.)
pub const POINT_NS: u64 = 20_000_000;

/// The papers' quantum.
pub const UNIX_QUANTUM_NS: u64 = 30_000_000;

/// The decay of a UNIX kernel: once a second.
pub const UNIX_DECAY_NS: u64 = 1_000_000_000;

impl Policy {
    /// Reads a policy from TOML; `origin` is the file name that errors give.
    ///
    /// # Errors
    /// Text that is not TOML, an unknown key, a wrong unit, or a contradiction.
    pub fn parse(text: &str, origin: &str) -> Result<Policy, PolicyError> {
        Ok(text::parse(text, origin)?)
    }

    /// Writes the policy as TOML that [`Policy::parse`] reads back as the same policy.
    pub fn to_toml(&self) -> String {
        text::to_toml(self)
    }

    /// The paper's affinity with the constants `a_t` and `a_p`, in points of priority: `light` is
    /// (6, 6), `heavy` is (16, 16), and the standard scheduler is (0, 0).
    pub fn affinity(a_t: u32, a_p: u32) -> Policy {
        Policy {
            name: format!("affinity-{a_t}-{a_p}"),
            description: format!("UNIX with affinity: a_t = {a_t} and a_p = {a_p} points of 20 ms"),
            discipline: Discipline::SystemV,
            quantum_ns: UNIX_QUANTUM_NS,
            credit: Credit {
                time_ns: u64::from(a_t) * POINT_NS,
                processor_ns: u64::from(a_p) * POINT_NS,
                ..Credit::default()
            },
            complex: false,
            fade_permille: 0,
            attached: false,
            steady: false,
            decay_ns: UNIX_DECAY_NS,
            saturation_ns: None,
            isolation: ClassNames::default(),
        }
    }
}

impl Policy {
    /// The policy on a machine where moves cost this. Credits that a steady one leaves out: `time` and `processor` are
    /// a quantum, for tasks of one CPU take turns by quanta, and CPUs of one cache even out no less. `llc` is what a
    /// move to another cache costs, and `node` what one to another node costs beyond that.
    #[must_use]
    pub fn on(&self, costs: MoveCosts) -> Policy {
        let or = |given: u64, cost: u64| if self.steady && given == 0 { cost } else { given };
        let MoveCosts { cache_ns, node_ns, .. } = costs;
        let credit = Credit {
            time_ns: or(self.credit.time_ns, self.quantum_ns),
            processor_ns: or(self.credit.processor_ns, self.quantum_ns),
            llc_ns: or(self.credit.llc_ns, cache_ns),
            node_ns: or(self.credit.node_ns, node_ns.saturating_sub(cache_ns)),
            ..self.credit
        };
        Policy { credit, ..self.clone() }
    }

    /// For how long a CPU of a machine may idle beside a task that waits and that it may run: none if for as long as it
    /// lasts. A steady policy lets it idle for the cost of the farthest move; that is paid at ticks, and one more tick
    /// may pass until it is told.
    pub fn longest_idle_ns(&self, machine: &Machine) -> Option<u64> {
        if self.attached || self.discipline == Discipline::Kernel {
            None
        } else if self.steady {
            Some(machine.move_costs().node_ns + 2 * machine.kernel.tick_ns)
        } else {
            Some(0)
        }
    }

    /// Why it cannot be used with a real kernel, if it cannot, and what can.
    pub fn not_live(&self) -> Option<&'static str> {
        (self.discipline == Discipline::Kernel).then_some(
            "it is a model of Linux's own scheduler for the simulated machine; on Linux that scheduler runs without Hearth, and \
             `hearth emulate` calls it `kernel`",
        )
    }

    /// What is left of the `time` credit of a task that ran here this long ago. With `complex` it
    /// fades; without, the task that ran last has it whole (and no other has any).
    pub fn time_credit_after(&self, elapsed_ns: u64) -> u64 {
        let lost = u128::from(elapsed_ns) * u128::from(self.fade_permille) / 1000;
        self.credit.time_ns.saturating_sub(u64::try_from(lost).unwrap_or(u64::MAX))
    }
}

/// Why a policy could not be had.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The text is wrong, or contradicts itself.
    #[error(transparent)]
    Text(#[from] LocatedError),
    /// No preset has this name, and no file can be read there.
    #[error(transparent)]
    Unreadable(#[from] UnreadableError),
}

/// The example of the documentation, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/write-a-planner.md")]
struct WriteAPlanner;
