//! What a planner is told: tasks, CPUs, groups and memory at one moment.

mod memory;
mod program;
mod run;

pub use memory::{Memory, Moved, Page, Process};
pub use program::{Asks, Program};
pub use run::{Class, Run};

pub use hearth_machine::CpuSet;
use std::collections::BTreeMap;

/// A machine and what it runs, at one moment. Counts of time only ever grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// When, by the host's monotonic clock.
    pub at_ns: u64,
    /// All CPUs, by number, ascending.
    pub cpus: Vec<Cpu>,
    /// The tasks that are scheduled, in no order.
    pub tasks: Vec<Task>,
    /// The sets of CPUs on which tasks may run, each once: [`Task::mask`] counts into it.
    pub masks: Vec<CpuSet>,
    /// The groups of these tasks, by id.
    pub groups: BTreeMap<u64, Group>,
    /// Parallel programs that asked to be scheduled as one, in the order in which they asked.
    pub programs: Vec<Program>,
    /// Processes and the pages that they use.
    pub memory: Memory,
    /// Runs that ended since the snapshot before, in the order in which they ended. Empty where nobody counts.
    pub runs: Vec<Run>,
    /// How groups are to be isolated, by id; who is in neither class is not here.
    pub classes: BTreeMap<u64, Class>,
    /// Where a set is in `masks`.
    places: BTreeMap<CpuSet, usize>,
}

/// A CPU and its load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Its number; there may be holes.
    pub number: usize,
    /// Its last-level cache, from 0.
    pub domain: usize,
    /// Its memory node.
    pub node: usize,
    /// Whether a task runs here.
    pub is_busy: bool,
    /// Tasks that wait here.
    pub waiting: usize,
}

/// A task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Its thread id.
    pub tid: i32,
    /// The process that it is of.
    pub process: i32,
    /// The process that began that one, or took it over; 0 if there is none.
    pub parent: i32,
    /// Its control group; 0 if there are none.
    pub group: u64,
    /// 100 is that of nice 0.
    pub weight: u32,
    /// Where it runs or waits, or ran last.
    pub cpu: usize,
    /// Where it may run, as an index into [`Snapshot::masks`].
    pub mask: usize,
    /// What it does.
    pub state: State,
    /// CPU time that it counts as having had, weighted, in the order of its discipline.
    pub usage_ns: u64,
    /// CPU time that it has had.
    pub ran_ns: u64,
    /// Time that it has waited for a CPU.
    pub waited_ns: u64,
}

/// What a task does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Running,
    /// It waits for a CPU.
    Waiting,
    /// It waits for something else.
    #[default]
    Asleep,
}

impl Task {
    /// Whether it runs or could.
    pub fn is_runnable(&self) -> bool {
        self.state != State::Asleep
    }
}

/// A control group's own tasks, those of groups below it aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Tasks.
    pub tasks: usize,
    /// Of these, such as run or could.
    pub runnable: usize,
}

impl Snapshot {
    /// A machine without tasks: its CPUs as number, cache domain and node, in any order.
    pub fn new(at_ns: u64, cpus: impl IntoIterator<Item = (usize, usize, usize)>) -> Self {
        let cpu = |(number, domain, node)| Cpu { number, domain, node, ..Cpu::default() };
        let mut cpus: Vec<Cpu> = cpus.into_iter().map(cpu).collect();
        cpus.sort_by_key(|cpu| cpu.number);
        cpus.dedup_by_key(|cpu| cpu.number);
        Self { at_ns, cpus, ..Self::default() }
    }

    /// Memory, and nothing of tasks and CPUs.
    pub fn of_memory(at_ns: u64, memory: Memory) -> Self {
        Self { at_ns, memory, ..Self::default() }
    }

    /// The index of a set of CPUs among the masks; it need not be there yet.
    pub fn mask(&mut self, cpus: CpuSet) -> usize {
        *self.places.entry(cpus).or_insert_with_key(|cpus| {
            self.masks.push(*cpus);
            self.masks.len() - 1
        })
    }

    /// Adds a task, and counts it where it runs or waits and in its group. [`Self::mask`] tells its mask.
    pub fn add(&mut self, task: Task) {
        if let Ok(place) = self.cpus.binary_search_by_key(&task.cpu, |cpu| cpu.number) {
            let cpu = &mut self.cpus[place];
            cpu.is_busy |= task.state == State::Running;
            cpu.waiting += usize::from(task.state == State::Waiting);
        }
        let group = self.groups.entry(task.group).or_default();
        group.tasks += 1;
        group.runnable += usize::from(task.is_runnable());
        self.tasks.push(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_and_groups_are_counted_as_tasks_are_added() {
        let mut snapshot = Snapshot::new(5, [(4, 1, 0), (0, 0, 0)]);
        let mask = snapshot.mask([0, 4].into());
        let task = Task { group: 7, mask, cpu: 4, ..Task::default() };
        snapshot.add(Task { state: State::Running, ..task });
        snapshot.add(Task { state: State::Waiting, ..task });
        snapshot.add(Task { cpu: 99, ..task });
        assert_eq!(snapshot.cpus[1], Cpu { number: 4, domain: 1, node: 0, is_busy: true, waiting: 1 });
        assert!(!snapshot.cpus[0].is_busy);
        assert_eq!(snapshot.groups[&7], Group { tasks: 3, runnable: 2 });
    }

    #[test]
    fn a_mask_is_there_once() {
        let mut snapshot = Snapshot::default();
        let [a, b, c] = [[0, 1], [0, 2], [1, 0]].map(|cpus| snapshot.mask(cpus.into()));
        assert_eq!((a, b, c), (0, 1, 0));
        assert_eq!(snapshot.masks.len(), 2);
    }
}
