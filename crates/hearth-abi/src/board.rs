//! Where plans are published to the scheduler: memory that its callbacks read.
//!
//! ```text
//! published --> shape in force, shape before     of 4
//!           --> plan in force                    of 2
//! ```
//!
//! What is in force is never written to, but for the time up to which a plan holds. A plan is written beside
//! the one in force and then published with one word, so a CPU follows the one or the other.

use crate::{LEAST_SHARE, MAX_CPUS, OF_TASK, PLANS, PlanBuffer, Published, SHAPES, Shape, Target};
use bytemuck::Zeroable;
use hearth_policy::{Plan, SHARE_PERMILLE, SLICE_PERMILLE};
use std::sync::atomic::{AtomicU64, Ordering};

const _: () = assert!(
    hearth_policy::MAX_PARTS == crate::MAX_PARTS && hearth_policy::MAX_TARGETS == crate::MAX_TARGETS,
    "a plan that passes its check has room"
);

const _: () = assert!(
    *SLICE_PERMILLE.end() <= u16::MAX as u32
        && *SHARE_PERMILLE.start() == LEAST_SHARE
        && *SHARE_PERMILLE.end() <= u16::MAX as u32,
    "what a plan that passes its check scales by is followed"
);

/// The scheduler's memory, as its host reaches it.
pub trait Memory {
    /// The word that says what is in force ([`Published`]).
    fn published(&self) -> &AtomicU64;

    /// Writes the shape of this index, below [`SHAPES`], which no CPU reads.
    fn write_shape(&mut self, index: usize, shape: &Shape);

    /// Writes the plan of this index, below [`PLANS`], which is not in force.
    fn write_plan(&mut self, index: usize, plan: &PlanBuffer);

    /// Has the plan of this index hold until then, while it may be in force.
    fn renew(&mut self, index: usize, until_ns: u64);

    /// Whether tasks wait that are counted in this cell of all shapes, below [`CELLS`](crate::CELLS).
    fn has_waiting(&self, cell: usize) -> bool;
}

/// What came of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in force.
    Published,
    /// It was in force, and holds for longer.
    Renewed,
    /// Tasks still wait as the shape before has it: the plan in force holds for longer.
    Postponed,
}

/// The scheduler's memory, with what was written to it. One at a time writes to one scheduler.
pub struct Board<M> {
    memory: M,
    domains: Vec<Vec<usize>>,
    /// The parts that each shape in memory has; none for the first, the machine undivided, and for those
    /// that were not written to yet.
    shapes: [Vec<Vec<usize>>; SHAPES],
    /// The word that was published last, and what for.
    word: u64,
    plan: Plan,
}

impl<M: Memory> Board<M> {
    /// The memory of a scheduler that begins. `domains`: the machine's CPUs, by cache domain.
    pub fn new(memory: M, domains: Vec<Vec<usize>>) -> Self {
        Self { memory, domains, shapes: Default::default(), word: 0, plan: Plan::default() }
    }

    /// What is in force.
    pub fn published(&self) -> Published {
        Published::of(self.memory.published().load(Ordering::Acquire))
    }

    /// Has a plan that has passed its check followed until then, by the clock that the scheduler reads. The
    /// plan that is in force already only holds for longer.
    pub fn publish(&mut self, plan: &Plan, until_ns: u64) -> Outcome {
        let word = self.memory.published().load(Ordering::Acquire);
        let now = Published::of(word);
        let is_in_force = word == self.word && now.plan.is_some() && *plan == self.plan;
        if is_in_force && now.before == now.shape {
            self.renew(now, until_ns);
            return Outcome::Renewed;
        }
        let before_is_empty = now.before == now.shape || self.is_empty(now.before);
        let Some(shape) = self.shape_for(&plan.parts, now, before_is_empty) else {
            self.renew(now, until_ns);
            return Outcome::Postponed;
        };
        let before = match (shape == now.shape, before_is_empty) {
            (false, _) => now.shape,
            (true, true) => shape,
            (true, false) => now.before,
        };
        let index = now.plan.map_or(0, |index| (index + 1) % PLANS);
        self.memory.write_plan(index, &buffer(plan, until_ns));
        let next = Published { sequence: now.sequence + 1, shape, before, plan: Some(index) }.word();
        let published = self.memory.published();
        // The scheduler may have dropped the plan in this moment: then the next step publishes.
        if published.compare_exchange(word, next, Ordering::Release, Ordering::Relaxed).is_err() {
            return Outcome::Postponed;
        }
        self.word = next;
        self.plan = plan.clone();
        if is_in_force { Outcome::Renewed } else { Outcome::Published }
    }

    fn renew(&mut self, now: Published, until_ns: u64) {
        if let Some(index) = now.plan {
            self.memory.renew(index, until_ns);
        }
    }

    /// The index of a shape with these parts; it is written if there is none, and room. Tasks that wait as an
    /// earlier shape has it are looked for in one shape before, and in no others.
    fn shape_for(&mut self, parts: &[Vec<usize>], now: Published, may_change: bool) -> Option<usize> {
        if self.shapes[now.shape] == parts {
            return Some(now.shape);
        }
        if !may_change {
            return None;
        }
        if let Some(index) = self.shapes.iter().position(|shape| shape == parts) {
            return Some(index);
        }
        let index = (1..SHAPES).find(|&index| index != now.shape && self.is_empty(index))?;
        // Neither in force nor before, and no task is counted in it: no CPU reads it.
        self.memory.write_shape(index, &Shape::new(parts, &self.domains).ok()?);
        self.shapes[index] = parts.to_vec();
        Some(index)
    }

    /// Whether no task waits that is counted in a shape.
    fn is_empty(&self, shape: usize) -> bool {
        !(shape * MAX_CPUS..(shape + 1) * MAX_CPUS).any(|cell| self.memory.has_waiting(cell))
    }
}

/// A plan as the scheduler reads it.
fn buffer(plan: &Plan, until_ns: u64) -> PlanBuffer {
    let mut buffer = PlanBuffer {
        until_ns,
        row_ns: plan.rows.length_ns,
        nr_rows: plan.rows.count as u32,
        ..PlanBuffer::zeroed()
    };
    let groups = plan.groups.iter().map(|(&id, target)| target_of(id, target));
    let tasks = plan.tasks.iter().map(|(&tid, target)| target_of(OF_TASK | tid as u64, target));
    // Both are by id, and the bit of tasks is the highest.
    for (place, target) in buffer.targets.iter_mut().zip(groups.chain(tasks)) {
        *place = target;
        buffer.nr_targets += 1;
    }
    buffer
}

fn target_of(id: u64, target: &hearth_policy::Target) -> Target {
    let number = |index: Option<usize>| index.map_or(-1, |index| index as i32);
    Target {
        id,
        home: number(target.home),
        part: number(target.part),
        slice_permille: target.slice_permille as u16,
        share_permille: target.share_permille as u16,
        row: number(target.row),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CELLS;
    use hearth_policy::Target;

    const STEP: u64 = 100;

    /// A scheduler's memory before anything was published.
    struct Kept {
        published: AtomicU64,
        shapes: Vec<Option<Shape>>,
        plans: Vec<PlanBuffer>,
        waiting: Vec<bool>,
    }

    impl Memory for Kept {
        fn published(&self) -> &AtomicU64 {
            &self.published
        }

        fn write_shape(&mut self, index: usize, shape: &Shape) {
            self.shapes[index] = Some(*shape);
        }

        fn write_plan(&mut self, index: usize, plan: &PlanBuffer) {
            self.plans[index] = *plan;
        }

        fn renew(&mut self, index: usize, until_ns: u64) {
            self.plans[index].until_ns = until_ns;
        }

        fn has_waiting(&self, cell: usize) -> bool {
            self.waiting[cell]
        }
    }

    /// A board of 4 CPUs.
    fn board() -> Board<Kept> {
        let memory = Kept {
            published: AtomicU64::new(0),
            shapes: vec![None; SHAPES],
            plans: vec![PlanBuffer::zeroed(); PLANS],
            waiting: vec![false; CELLS],
        };
        Board::new(memory, vec![vec![0, 1], vec![2, 3]])
    }

    fn halves() -> Plan {
        Plan { parts: vec![vec![0, 2], vec![1, 3]], ..Plan::default() }
    }

    fn other() -> Plan {
        Plan { parts: vec![vec![0], vec![1, 2, 3]], ..Plan::default() }
    }

    fn until_ns(board: &Board<Kept>) -> u64 {
        board.memory.plans[board.published().plan.unwrap()].until_ns
    }

    #[test]
    fn the_same_plan_again_only_holds_for_longer() {
        let mut board = board();
        assert_eq!(board.publish(&Plan::default(), STEP), Outcome::Published);
        let first = board.published();
        assert_eq!((first.sequence, first.shape, first.plan), (1, 0, Some(0)));
        assert_eq!(board.publish(&Plan::default(), 2 * STEP), Outcome::Renewed);
        assert_eq!((board.published(), until_ns(&board)), (first, 2 * STEP));
    }

    #[test]
    fn a_plan_is_never_written_over_the_one_in_force() {
        let mut board = board();
        for tid in 1..5 {
            let before = board.published().plan;
            let plan = Plan { tasks: [(tid, Target::at_home(3))].into(), ..Plan::default() };
            assert_eq!(board.publish(&plan, STEP), Outcome::Published);
            let now = board.published();
            assert_ne!(now.plan, before);
            let buffer = &board.memory.plans[now.plan.unwrap()];
            assert_eq!((buffer.nr_targets, buffer.targets[0].id), (1, OF_TASK | tid as u64));
            assert_eq!((buffer.targets[0].home, buffer.targets[0].part), (3, -1));
        }
    }

    #[test]
    fn targets_are_by_id() {
        let target = Target::default();
        let plan = Plan {
            tasks: [(9, target), (2, target)].into(),
            groups: [(1 << 40, target), (5, target)].into(),
            ..Plan::default()
        };
        let ids = buffer(&plan, STEP).targets[..4].iter().map(|target| target.id).collect::<Vec<_>>();
        assert_eq!(ids, [5, 1 << 40, OF_TASK | 2, OF_TASK | 9]);
    }

    #[test]
    fn a_shape_changes_only_when_nobody_waits_in_the_one_before_it() {
        let mut board = board();
        board.publish(&halves(), STEP);
        let now = board.published();
        assert_eq!((now.shape, now.before), (1, 0));
        assert_eq!(board.memory.shapes[1].unwrap().part_of[..4], [0, 1, 0, 1]);
        board.memory.waiting[1] = true;
        assert_eq!(board.publish(&other(), 2 * STEP), Outcome::Postponed);
        assert_eq!((board.published(), until_ns(&board)), (now, 2 * STEP));
        board.memory.waiting[1] = false;
        assert_eq!(board.publish(&other(), STEP), Outcome::Published);
        assert_eq!((board.published().shape, board.published().before), (2, 1));
    }

    #[test]
    fn the_shape_before_is_let_go_when_nobody_waits_in_it() {
        let mut board = board();
        board.publish(&halves(), STEP);
        board.memory.waiting[1] = true;
        assert_eq!(board.publish(&halves(), STEP), Outcome::Renewed);
        assert_eq!((board.published().shape, board.published().before), (1, 0));
        board.memory.waiting[1] = false;
        assert_eq!(board.publish(&halves(), STEP), Outcome::Renewed);
        assert_eq!((board.published().shape, board.published().before), (1, 1));
    }

    #[test]
    fn the_undivided_machine_is_always_the_first_shape() {
        let mut board = board();
        board.publish(&halves(), STEP);
        board.publish(&Plan::default(), STEP);
        assert_eq!((board.published().shape, board.published().before), (0, 1));
        board.publish(&halves(), STEP);
        assert_eq!(board.published().shape, 1);
    }

    #[test]
    fn what_the_scheduler_has_dropped_is_published_again() {
        let mut board = board();
        board.publish(&halves(), STEP);
        let dropped = Published { sequence: 2, shape: 0, before: 1, plan: None };
        board.memory.published.store(dropped.word(), Ordering::Relaxed);
        assert_eq!(board.publish(&halves(), STEP), Outcome::Published);
        assert_eq!(board.published(), Published { sequence: 3, shape: 1, before: 0, plan: Some(0) });
    }
}
