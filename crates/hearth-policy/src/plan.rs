//! What a planner says: what the scheduler should do until the next plan.

mod pages;

pub use pages::{PageMove, PagePlan, PagePlanError, Stayed};

use crate::snapshot::Snapshot;
use std::collections::{BTreeMap, BTreeSet};

/// Parts that a machine can have.
pub const MAX_PARTS: usize = 64;

/// Tasks and groups that one plan can speak of.
pub const MAX_TARGETS: usize = 1024;

/// The slice factors that a plan may give, in thousandths.
pub const SLICE_PERMILLE: std::ops::RangeInclusive<u32> = 1..=10_000;

/// The share factors that a plan may give, in thousandths.
pub const SHARE_PERMILLE: std::ops::RangeInclusive<u32> = 100..=10_000;

/// Rows of time that a plan may have.
pub const MAX_ROWS: usize = 1024;

/// How long a row of time may be, in nanoseconds.
pub const ROW_NS: std::ops::RangeInclusive<u64> = 1_000_000..=10_000_000_000;

/// What the scheduler should do. The empty plan is plain scheduling.
///
/// A plan moves tasks and delays them; it forbids none to run. A task's mask goes before its home and its
/// part, and no wait is longer than the scheduler promises.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Sets of CPUs that look for work among themselves first. Together they are all CPUs, each once;
    /// none if the machine is undivided.
    pub parts: Vec<Vec<usize>>,
    /// What holds for single tasks, by thread id; goes before what holds for their groups.
    pub tasks: BTreeMap<i32, Target>,
    /// What holds for all tasks of a group itself, by the group's id.
    pub groups: BTreeMap<u64, Target>,
    /// Rows of time, which [`Target::row`] counts into.
    pub rows: Rows,
    /// Pages that move.
    pub pages: PagePlan,
}

/// Rows of time, one after the other, again and again: in each, its members run at the same time, each on
/// the CPU that is its home. A row without members is the time of everybody else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// How many; none if nothing runs by rows.
    pub count: usize,
    /// How long each is: [`ROW_NS`], if there are any.
    pub length_ns: u64,
}

/// What holds for a task, or for each task of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The CPU in whose queue it waits; where it last ran, if none.
    pub home: Option<usize>,
    /// The part in which alone it runs, an index into [`Plan::parts`].
    pub part: Option<usize>,
    /// Its slice, in thousandths of what the policy gives it.
    pub slice_permille: u32,
    /// Its CPU time counts so that it gets so many thousandths of the share that its weight gives it; 1000
    /// leaves the share as it is. The slice has its own factor.
    pub share_permille: u32,
    /// The row in whose time it goes before others on the CPU that is its home; it must have one.
    pub row: Option<usize>,
}

impl Default for Target {
    fn default() -> Self {
        Self { home: None, part: None, slice_permille: 1000, share_permille: 1000, row: None }
    }
}

impl Target {
    /// A home, and nothing else.
    pub fn at_home(cpu: usize) -> Self {
        Self { home: Some(cpu), ..Self::default() }
    }
}

/// Whose target is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// A task, by its thread id.
    Task(i32),
    /// All tasks of a group, by its id.
    Group(u64),
}

impl std::fmt::Display for Of {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Task(tid) => write!(out, "task {tid}"),
            Self::Group(id) => write!(out, "group {id}"),
        }
    }
}

/// What is wrong with a plan, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// More than [`MAX_PARTS`].
    #[error("the plan has {0} parts; a machine can have {MAX_PARTS}")]
    TooManyParts(usize),
    /// A part without CPUs.
    #[error("part {0} of the plan has no CPU")]
    EmptyPart(usize),
    /// A CPU that is not there, or is in an earlier part.
    #[error("part {part} of the plan has CPU {cpu}, which does not exist or is in a part already")]
    Cpu {
        /// The part.
        part: usize,
        /// The CPU.
        cpu: usize,
    },
    /// A CPU that is in no part.
    #[error("the plan has parts, but CPU {0} is in none")]
    LeftOut(usize),
    /// More than [`MAX_TARGETS`].
    #[error("the plan speaks of {0} tasks and groups; it may of {MAX_TARGETS}")]
    TooManyTargets(usize),
    /// No thread has this id.
    #[error("the plan speaks of task {0}; thread ids are greater than 0")]
    NoTask(i32),
    /// A home that is not there.
    #[error("the plan gives {of} the home CPU {home}, which does not exist")]
    Home {
        /// Whose.
        of: Of,
        /// As given.
        home: usize,
    },
    /// A part that is not there.
    #[error("the plan gives {of} part {part} of {parts}")]
    Part {
        /// Whose.
        of: Of,
        /// As given.
        part: usize,
        /// How many there are.
        parts: usize,
    },
    /// A home outside of the part.
    #[error("the plan gives {of} the home CPU {home}, which is not in its part {part}")]
    HomeAbroad {
        /// Whose.
        of: Of,
        /// As given.
        home: usize,
        /// As given.
        part: usize,
    },
    /// A slice factor out of [`SLICE_PERMILLE`].
    #[error("the plan gives {of} {permille} thousandths of its slice; 1 to 10000 are possible")]
    Slice {
        /// Whose.
        of: Of,
        /// As given.
        permille: u32,
    },
    /// A share factor out of [`SHARE_PERMILLE`].
    #[error("the plan gives {of} {permille} thousandths of its share; 100 to 10000 are possible")]
    Share {
        /// Whose.
        of: Of,
        /// As given.
        permille: u32,
    },
    /// More than [`MAX_ROWS`].
    #[error("the plan has {0} rows of time; it may have {MAX_ROWS}")]
    TooManyRows(usize),
    /// A length out of [`ROW_NS`].
    #[error("the plan's rows are {0} ns long; 1 ms to 10 s is possible")]
    RowLength(u64),
    /// A row that is not there.
    #[error("the plan gives {of} row {row} of {rows}")]
    Row {
        /// Whose.
        of: Of,
        /// As given.
        row: usize,
        /// How many there are.
        rows: usize,
    },
    /// A row without a CPU.
    #[error("the plan gives {0} a row, but no home to run at")]
    RowWithoutHome(Of),
    /// What is said of pages.
    #[error(transparent)]
    Pages(#[from] PagePlanError),
}

impl Plan {
    /// Whether the machine of this snapshot can follow it.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, snapshot: &Snapshot) -> Result<(), PlanError> {
        let cpus: BTreeSet<usize> = snapshot.cpus.iter().map(|cpu| cpu.number).collect();
        self.check_parts(&cpus)?;
        self.check_rows()?;
        let count = self.tasks.len() + self.groups.len();
        if count > MAX_TARGETS {
            return Err(PlanError::TooManyTargets(count));
        }
        if let Some((&tid, _)) = self.tasks.first_key_value().filter(|(tid, _)| **tid <= 0) {
            return Err(PlanError::NoTask(tid));
        }
        let tasks = self.tasks.iter().map(|(&tid, target)| (Of::Task(tid), target));
        let groups = self.groups.iter().map(|(&id, target)| (Of::Group(id), target));
        tasks.chain(groups).try_for_each(|(of, target)| self.check_target(of, target, &cpus))?;
        Ok(self.pages.check(&snapshot.memory)?)
    }

    fn check_parts(&self, cpus: &BTreeSet<usize>) -> Result<(), PlanError> {
        if self.parts.is_empty() {
            return Ok(());
        }
        if self.parts.len() > MAX_PARTS {
            return Err(PlanError::TooManyParts(self.parts.len()));
        }
        let mut left = cpus.clone();
        for (part, members) in self.parts.iter().enumerate() {
            if members.is_empty() {
                return Err(PlanError::EmptyPart(part));
            }
            if let Some(&cpu) = members.iter().find(|cpu| !left.remove(cpu)) {
                return Err(PlanError::Cpu { part, cpu });
            }
        }
        left.first().map_or(Ok(()), |&cpu| Err(PlanError::LeftOut(cpu)))
    }

    fn check_rows(&self) -> Result<(), PlanError> {
        let Rows { count, length_ns } = self.rows;
        if count > MAX_ROWS {
            return Err(PlanError::TooManyRows(count));
        }
        if count > 0 && !ROW_NS.contains(&length_ns) {
            return Err(PlanError::RowLength(length_ns));
        }
        Ok(())
    }

    fn check_target(&self, of: Of, target: &Target, cpus: &BTreeSet<usize>) -> Result<(), PlanError> {
        let Target { home, part, slice_permille, share_permille, row } = *target;
        if let Some(home) = home.filter(|home| !cpus.contains(home)) {
            return Err(PlanError::Home { of, home });
        }
        if let Some(part) = part {
            let Some(members) = self.parts.get(part) else {
                return Err(PlanError::Part { of, part, parts: self.parts.len() });
            };
            if let Some(home) = home.filter(|home| !members.contains(home)) {
                return Err(PlanError::HomeAbroad { of, home, part });
            }
        }
        if !SLICE_PERMILLE.contains(&slice_permille) {
            return Err(PlanError::Slice { of, permille: slice_permille });
        }
        if !SHARE_PERMILLE.contains(&share_permille) {
            return Err(PlanError::Share { of, permille: share_permille });
        }
        match row {
            Some(row) if row >= self.rows.count => Err(PlanError::Row { of, row, rows: self.rows.count }),
            Some(_) if home.is_none() => Err(PlanError::RowWithoutHome(of)),
            _ => Ok(()),
        }
    }

    /// The part that a CPU is in, if there are parts.
    pub fn part_of(&self, cpu: usize) -> Option<usize> {
        self.parts.iter().position(|part| part.contains(&cpu))
    }

    /// What holds for a task of a group.
    pub fn target(&self, tid: i32, group: u64) -> Option<&Target> {
        self.tasks.get(&tid).or_else(|| self.groups.get(&group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Snapshot {
        Snapshot::new(0, [0, 1, 4].map(|number| (number, 0, 0)))
    }

    fn error(plan: &Plan) -> PlanError {
        plan.check(&machine()).unwrap_err()
    }

    fn parts(parts: &[&[usize]]) -> Plan {
        Plan { parts: parts.iter().map(|part| part.to_vec()).collect(), ..Plan::default() }
    }

    fn group(target: Target) -> Plan {
        Plan { groups: [(7, target)].into(), ..parts(&[&[0, 1], &[4]]) }
    }

    #[test]
    fn a_plan_of_what_is_there_is_right() {
        assert_eq!(Plan::default().check(&machine()), Ok(()));
        let target =
            Target { part: Some(1), slice_permille: 500, share_permille: 2000, ..Target::at_home(4) };
        assert_eq!(group(target).check(&machine()), Ok(()));
    }

    #[test]
    fn pages_are_checked_with_the_rest() {
        let page = PageMove { process: 1, page: 0, to: 0 };
        let pages = PagePlan { moves: vec![page], ..PagePlan::default() };
        assert!(matches!(error(&Plan { pages, ..Plan::default() }), PlanError::Pages(_)));
    }

    #[test]
    fn parts_are_all_cpus_each_once() {
        assert_eq!(error(&parts(&[&[0, 1], &[1, 4]])), PlanError::Cpu { part: 1, cpu: 1 });
        assert_eq!(error(&parts(&[&[0, 1, 4, 2]])), PlanError::Cpu { part: 0, cpu: 2 });
        assert_eq!(error(&parts(&[&[0, 1]])), PlanError::LeftOut(4));
        assert_eq!(error(&parts(&[&[0, 1, 4], &[]])), PlanError::EmptyPart(1));
        assert_eq!(error(&parts(&[&[0][..]; MAX_PARTS + 1])), PlanError::TooManyParts(MAX_PARTS + 1));
    }

    #[test]
    fn targets_are_within_the_machine() {
        let of = Of::Group(7);
        let target = Target::default();
        for (target, wrong) in [
            (Target::at_home(2), PlanError::Home { of, home: 2 }),
            (Target { part: Some(2), ..target }, PlanError::Part { of, part: 2, parts: 2 }),
            (Target { part: Some(1), ..Target::at_home(0) }, PlanError::HomeAbroad { of, home: 0, part: 1 }),
            (Target { slice_permille: 0, ..target }, PlanError::Slice { of, permille: 0 }),
            (Target { slice_permille: 10_001, ..target }, PlanError::Slice { of, permille: 10_001 }),
            (Target { share_permille: 99, ..target }, PlanError::Share { of, permille: 99 }),
            (Target { share_permille: 10_001, ..target }, PlanError::Share { of, permille: 10_001 }),
        ] {
            assert_eq!(error(&group(target)), wrong);
        }
        let tasks = (0..=MAX_TARGETS as i32).map(|tid| (tid, target)).collect();
        assert_eq!(error(&Plan { tasks, ..Plan::default() }), PlanError::TooManyTargets(MAX_TARGETS + 1));
        let tasks = [(0, target)].into();
        assert_eq!(error(&Plan { tasks, ..Plan::default() }), PlanError::NoTask(0));
    }

    #[test]
    fn a_row_is_one_of_the_plan_and_its_member_has_a_home() {
        let of = Of::Group(7);
        let with = |rows, target| Plan { rows, ..group(target) };
        let rows = Rows { count: 2, length_ns: 100_000_000 };
        let member = Target { row: Some(1), ..Target::at_home(0) };
        assert_eq!(with(rows, member).check(&machine()), Ok(()));
        for (rows, target, wrong) in [
            (Rows { count: 1, ..rows }, member, PlanError::Row { of, row: 1, rows: 1 }),
            (Rows::default(), member, PlanError::Row { of, row: 1, rows: 0 }),
            (rows, Target { home: None, ..member }, PlanError::RowWithoutHome(of)),
            (Rows { count: MAX_ROWS + 1, ..rows }, member, PlanError::TooManyRows(MAX_ROWS + 1)),
            (Rows { length_ns: 999_999, ..rows }, member, PlanError::RowLength(999_999)),
            (Rows { length_ns: 10_000_000_001, ..rows }, member, PlanError::RowLength(10_000_000_001)),
        ] {
            assert_eq!(error(&with(rows, target)), wrong);
        }
    }

    #[test]
    fn what_is_said_of_a_task_goes_before_what_is_said_of_its_group() {
        let plan = Plan { tasks: [(3, Target::at_home(0))].into(), ..group(Target::at_home(1)) };
        assert_eq!(plan.target(3, 7), Some(&Target::at_home(0)));
        assert_eq!(plan.target(4, 7), Some(&Target::at_home(1)));
        assert_eq!(plan.target(4, 8), None);
    }
}
