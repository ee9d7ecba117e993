//! Where plans are published to the scheduler: memory that its callbacks read.
//!
//! ```text
//! published --> shape in force, shape before     of 4
//!           --> plan in force                    of 2
//! ```
//!
//! What is in force is never written to, but for the time up to which a plan holds. A plan is written beside
//! the one in force and then published with one word, so a CPU follows the one or the other.

use crate::scheduler::bpf::types::bss;
use crate::{Error, shape};
use bytemuck::Zeroable;
use hearth_machine::host::HostTopology;
use hearth_policy::{Plan, Target};
use hearth_seam::{self as seam, MAX_CPUS, OF_TASK, PLANS, PlanBuffer, Published, SHAPES, Shape};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

const _: () = assert!(
    hearth_policy::MAX_PARTS == seam::MAX_PARTS && hearth_policy::MAX_TARGETS == seam::MAX_TARGETS,
    "a plan that passes its check has room"
);

/// What came of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is in force.
    Published,
    /// It was in force, and holds for longer.
    Renewed,
    /// Tasks still wait as the shape before has it: the plan in force holds for longer.
    Postponed,
}

/// The scheduler's memory, mapped a second time, with what was written to it.
pub(crate) struct Board {
    memory: NonNull<bss>,
    is_mapped: bool,
    domains: Vec<Vec<usize>>,
    /// The parts that each shape in memory has; none for the first, the machine undivided, and for those
    /// that were not written to yet.
    shapes: [Vec<Vec<usize>>; SHAPES],
    /// The word that was published last, and what for.
    word: u64,
    plan: Plan,
}

// SAFETY: the mapping is this struct's own, and the memory is written by one thread of this process only.
unsafe impl Send for Board {}

impl Board {
    /// Maps the scheduler's memory.
    ///
    /// # Errors
    /// What the system refuses.
    pub(crate) fn map(data: BorrowedFd<'_>, host: &HostTopology) -> Result<Self, Error> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, of which nothing else knows.
        let memory = unsafe { mmap(ptr::null_mut(), size_of::<bss>(), access, MapFlags::SHARED, data, 0) };
        let refused =
            |error: rustix::io::Errno| Error::refused("map plans", std::io::Error::from(error).into());
        let memory = NonNull::new(memory.map_err(refused)?.cast());
        let memory = memory.ok_or(Error::Incomplete { section: "data" })?;
        let mut board = Self::new(memory, shape::domains(host));
        board.is_mapped = true;
        Ok(board)
    }

    fn new(memory: NonNull<bss>, domains: Vec<Vec<usize>>) -> Self {
        let shapes = Default::default();
        Self { memory, is_mapped: false, domains, shapes, word: 0, plan: Plan::default() }
    }

    /// What is in force.
    pub(crate) fn published(&self) -> Published {
        Published::of(self.word().load(Ordering::Acquire))
    }

    /// Has a plan that has passed its check followed until then, by the monotonic clock. The plan that is in
    /// force already only holds for longer.
    pub(crate) fn publish(&mut self, plan: &Plan, until_ns: u64) -> Outcome {
        let word = self.word().load(Ordering::Acquire);
        let now = Published::of(word);
        let is_ours = word == self.word && now.plan.is_some();
        if is_ours && *plan == self.plan && now.before == now.shape {
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
        self.write_plan(index, plan, until_ns);
        let next = Published { sequence: now.sequence + 1, shape, before, plan: Some(index) }.word();
        // The scheduler may have dropped the plan in this moment: then the next step publishes.
        if self.word().compare_exchange(word, next, Ordering::Release, Ordering::Relaxed).is_err() {
            return Outcome::Postponed;
        }
        self.word = next;
        self.plan = plan.clone();
        Outcome::Published
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: aligned, inside the memory; other processes and the kernel access it as one word, too.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.memory.as_ptr()).published) }
    }

    fn renew(&self, now: Published, until_ns: u64) {
        if let Some(index) = now.plan {
            // SAFETY: aligned, inside the memory; the kernel reads it meanwhile, so it is written whole.
            unsafe { ptr::write_volatile(&raw mut (*self.plan_at(index)).until_ns, until_ns) };
        }
    }

    fn plan_at(&self, index: usize) -> *mut PlanBuffer {
        // SAFETY: inside the memory; the same struct, as the build has compared.
        unsafe { (&raw mut (*self.memory.as_ptr()).plans[index % PLANS]).cast() }
    }

    fn write_plan(&self, index: usize, plan: &Plan, until_ns: u64) {
        let mut buffer = PlanBuffer { until_ns, ..PlanBuffer::zeroed() };
        let groups = plan.groups.iter().map(|(&id, target)| target_of(id, target));
        let tasks = plan.tasks.iter().map(|(&tid, target)| target_of(OF_TASK | tid as u64, target));
        // Both are by id, and the bit of tasks is the highest.
        for (place, target) in buffer.targets.iter_mut().zip(groups.chain(tasks)) {
            *place = target;
            buffer.nr_targets += 1;
        }
        // SAFETY: inside the memory, aligned; this plan is not in force.
        unsafe { ptr::write_volatile(self.plan_at(index), buffer) };
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
        let shape = Shape::new(parts, &self.domains).ok()?;
        // SAFETY: inside the memory, aligned; the same struct, as the build has compared; no CPU reads this
        // one, for it is neither in force nor before, and no task is counted in it.
        unsafe { ptr::write_volatile((&raw mut (*self.memory.as_ptr()).shapes[index]).cast(), shape) };
        self.shapes[index] = parts.to_vec();
        Some(index)
    }

    /// Whether no task waits that is counted in a shape.
    fn is_empty(&self, shape: usize) -> bool {
        (shape * MAX_CPUS..(shape + 1) * MAX_CPUS).all(|cell| {
            // SAFETY: inside the memory; the kernel writes it meanwhile, so each is read whole.
            unsafe {
                let cell = &raw const (*self.memory.as_ptr()).cell_ctxs[cell];
                ptr::read_volatile(&raw const (*cell).waiting) == 0
                    && ptr::read_volatile(&raw const (*cell).strays) == 0
            }
        })
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        if self.is_mapped {
            // SAFETY: the mapping is this struct's own. What cannot be unmapped stays until the process ends.
            let _ = unsafe { munmap(self.memory.as_ptr().cast(), size_of::<bss>()) };
        }
    }
}

fn target_of(id: u64, target: &Target) -> seam::Target {
    let number = |index: Option<usize>| index.map_or(-1, |index| index as i32);
    seam::Target {
        id,
        home: number(target.home),
        part: number(target.part),
        slice_permille: target.slice_permille,
        pad: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::MaybeUninit;

    const STEP: u64 = 100;

    /// A scheduler's memory before anything was published, and a board on it of 4 CPUs.
    fn board() -> (Box<MaybeUninit<bss>>, Board) {
        let mut memory = Box::<bss>::new_zeroed();
        let place = NonNull::new(memory.as_mut_ptr()).unwrap();
        (memory, Board::new(place, vec![vec![0, 1], vec![2, 3]]))
    }

    fn halves() -> Plan {
        Plan { parts: vec![vec![0, 2], vec![1, 3]], ..Plan::default() }
    }

    fn other() -> Plan {
        Plan { parts: vec![vec![0], vec![1, 2, 3]], ..Plan::default() }
    }

    fn wait_in(board: &Board, shape: usize, tasks: i64) {
        // SAFETY: the test's own memory.
        unsafe { (*board.memory.as_ptr()).cell_ctxs[shape * MAX_CPUS + 1].waiting = tasks };
    }

    fn until_ns(board: &Board) -> u64 {
        // SAFETY: the test's own memory.
        unsafe { (*board.plan_at(board.published().plan.unwrap())).until_ns }
    }

    #[test]
    fn the_same_plan_again_only_holds_for_longer() {
        let (_memory, mut board) = board();
        assert_eq!(board.publish(&Plan::default(), STEP), Outcome::Published);
        let first = board.published();
        assert_eq!((first.sequence, first.shape, first.plan), (1, 0, Some(0)));
        assert_eq!(board.publish(&Plan::default(), 2 * STEP), Outcome::Renewed);
        assert_eq!((board.published(), until_ns(&board)), (first, 2 * STEP));
    }

    #[test]
    fn a_plan_is_never_written_over_the_one_in_force() {
        let (_memory, mut board) = board();
        for tid in 1..5 {
            let before = board.published().plan;
            let plan = Plan { tasks: [(tid, Target::at_home(3))].into(), ..Plan::default() };
            assert_eq!(board.publish(&plan, STEP), Outcome::Published);
            let now = board.published();
            assert_ne!(now.plan, before);
            // SAFETY: the test's own memory.
            let buffer = unsafe { board.plan_at(now.plan.unwrap()).read() };
            assert_eq!((buffer.nr_targets, buffer.targets[0].id), (1, OF_TASK | tid as u64));
            assert_eq!((buffer.targets[0].home, buffer.targets[0].part), (3, -1));
        }
    }

    #[test]
    fn targets_are_by_id() {
        let (_memory, mut board) = board();
        let target = Target::default();
        let plan = Plan {
            tasks: [(9, target), (2, target)].into(),
            groups: [(1 << 40, target), (5, target)].into(),
            ..Plan::default()
        };
        board.publish(&plan, STEP);
        // SAFETY: the test's own memory.
        let buffer = unsafe { board.plan_at(0).read() };
        let ids = buffer.targets[..4].iter().map(|target| target.id).collect::<Vec<_>>();
        assert_eq!(ids, [5, 1 << 40, OF_TASK | 2, OF_TASK | 9]);
    }

    #[test]
    fn a_shape_changes_only_when_nobody_waits_in_the_one_before_it() {
        let (_memory, mut board) = board();
        board.publish(&halves(), STEP);
        let now = board.published();
        assert_eq!((now.shape, now.before), (1, 0));
        wait_in(&board, 0, 1);
        assert_eq!(board.publish(&other(), 2 * STEP), Outcome::Postponed);
        assert_eq!((board.published(), until_ns(&board)), (now, 2 * STEP));
        wait_in(&board, 0, 0);
        assert_eq!(board.publish(&other(), STEP), Outcome::Published);
        assert_eq!((board.published().shape, board.published().before), (2, 1));
    }

    #[test]
    fn the_shape_before_is_let_go_when_nobody_waits_in_it() {
        let (_memory, mut board) = board();
        board.publish(&halves(), STEP);
        assert_eq!(board.publish(&halves(), STEP), Outcome::Published);
        assert_eq!((board.published().shape, board.published().before), (1, 1));
        assert_eq!(board.publish(&halves(), STEP), Outcome::Renewed);
    }

    #[test]
    fn the_undivided_machine_is_always_the_first_shape() {
        let (_memory, mut board) = board();
        board.publish(&halves(), STEP);
        board.publish(&Plan::default(), STEP);
        assert_eq!((board.published().shape, board.published().before), (0, 1));
        board.publish(&halves(), STEP);
        assert_eq!(board.published().shape, 1);
    }

    #[test]
    fn what_the_scheduler_has_dropped_is_published_again() {
        let (_memory, mut board) = board();
        board.publish(&halves(), STEP);
        let dropped = Published { sequence: 2, shape: 0, before: 1, plan: None };
        board.word().store(dropped.word(), Ordering::Relaxed);
        assert_eq!(board.publish(&halves(), STEP), Outcome::Published);
        assert_eq!(board.published(), Published { sequence: 3, shape: 1, before: 0, plan: Some(0) });
    }
}
