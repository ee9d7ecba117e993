//! Whose counts they are: the tasks of the guest's kernel, as it switches between them.

use crate::model::Mode;
use hearth_emulate::counts::{Counts, Task};
use hearth_machine::Machine;
use std::collections::HashMap;

/// Numbers of tasks for the causes of misses are below this. A guest with more tasks uses them again.
const NUMBERS: usize = u16::MAX as usize - 1;
/// The kernel's idle tasks.
const IDLE: u32 = 0;

/// A task of the kernel, and its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) pid: u32,
    pub(crate) comm: String,
}

/// What the caches are told of a task that begins to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) number: u16,
    /// It ran on another CPU before.
    pub(crate) moved: bool,
}

#[derive(Default)]
struct Known {
    task: Task,
    last_cpu: Option<usize>,
}

#[derive(Clone, Default)]
struct Cpu {
    domain: usize,
    node: usize,
    /// Who runs; nothing before the first switch that was seen.
    running: Option<usize>,
    /// What was counted before that switch, which says who it was.
    unknown: Task,
    /// What the CPU had counted when it was last settled.
    settled: Counts,
}

/// All tasks that have been seen, in all regions.
pub(crate) struct Tasks {
    cpus: Vec<Cpu>,
    all: Vec<Known>,
    by_pid: HashMap<u32, usize>,
}

impl Tasks {
    pub(crate) fn new(machine: &Machine) -> Self {
        let domain_cpus = machine.domain_cpus();
        let cpu = |cpu| Cpu { domain: cpu / domain_cpus, node: machine.node_of(cpu), ..Cpu::default() };
        let mut tasks =
            Self { cpus: (0..machine.cpus()).map(cpu).collect(), all: Vec::new(), by_pid: HashMap::new() };
        tasks.find(IDLE);
        tasks
    }

    fn find(&mut self, pid: u32) -> usize {
        *self.by_pid.entry(pid).or_insert_with(|| {
            let comm = if pid == IDLE { "idle".to_owned() } else { String::new() };
            self.all.push(Known { task: Task { pid, comm, ..Task::default() }, last_cpu: None });
            self.all.len() - 1
        })
    }

    /// Gives what a CPU has counted since it was last settled to the task that runs there.
    pub(crate) fn settle(&mut self, cpu: usize, now: Counts, mode: Mode) {
        let on = &mut self.cpus[cpu];
        let task = on.running.map_or(&mut on.unknown, |running| &mut self.all[running].task);
        let side = if mode == Mode::User { &mut task.user } else { &mut task.kernel };
        *side += now - on.settled;
        on.settled = now;
    }

    /// A CPU switches from one task to the next. Settle it first.
    pub(crate) fn switch(&mut self, cpu: usize, previous: &Named, next: &Named) -> Running {
        self.name(previous);
        self.name(next);
        let (previous, next) = (self.find(previous.pid), self.find(next.pid));
        let unknown = std::mem::take(&mut self.cpus[cpu].unknown);
        let left = &mut self.all[previous];
        left.task.user += unknown.user;
        left.task.kernel += unknown.kernel;
        left.last_cpu = Some(cpu);
        self.cpus[cpu].running = Some(next);
        let moved = self.arrive(cpu, next);
        Running { number: number(next), moved }
    }

    /// Says what a task is called now.
    pub(crate) fn name(&mut self, named: &Named) {
        let index = self.find(named.pid);
        let task = &mut self.all[index].task;
        if task.pid != IDLE && task.comm != named.comm && !named.comm.is_empty() {
            named.comm.clone_into(&mut task.comm);
        }
    }

    /// Counts that a task begins to run; whether it ran on another CPU before.
    fn arrive(&mut self, cpu: usize, index: usize) -> bool {
        let Known { task, last_cpu } = &mut self.all[index];
        task.switches += 1;
        let last = last_cpu.replace(cpu).unwrap_or(cpu);
        if task.pid == IDLE || last == cpu {
            return false;
        }
        let (from, to) = (&self.cpus[last], &self.cpus[cpu]);
        task.cpu_moves += 1;
        task.domain_moves += u64::from(from.domain != to.domain);
        task.node_moves += u64::from(from.node != to.node);
        true
    }

    /// From now on counts are those of a new region, before which each CPU has counted so much.
    pub(crate) fn begin_region(&mut self, before: &[Counts]) {
        for Known { task, .. } in &mut self.all {
            *task = Task { pid: task.pid, comm: std::mem::take(&mut task.comm), ..Task::default() };
        }
        for (cpu, before) in self.cpus.iter_mut().zip(before) {
            (cpu.unknown, cpu.settled) = (Task::default(), *before);
        }
    }

    /// Number of the task that runs on a CPU, as far as that is known.
    pub(crate) fn number_on(&self, cpu: usize) -> u16 {
        self.cpus[cpu].running.map_or(0, number)
    }

    /// The task that runs on a CPU, or what is known of it before the first switch that was seen.
    pub(crate) fn running_on(&self, cpu: usize) -> &Task {
        let on = &self.cpus[cpu];
        on.running.map_or(&on.unknown, |running| &self.all[running].task)
    }

    /// The tasks that did something in the region. A CPU that never switched idled.
    pub(crate) fn of_region(&self) -> Vec<Task> {
        let mut tasks: Vec<Task> = self.all.iter().map(|known| known.task.clone()).collect();
        for unknown in self.cpus.iter().map(|cpu| &cpu.unknown) {
            tasks[0].user += unknown.user;
            tasks[0].kernel += unknown.kernel;
        }
        tasks.retain(|task| task.switches > 0 || task.total() != Counts::default());
        tasks.sort_by_key(|task| task.pid);
        tasks
    }
}

fn number(index: usize) -> u16 {
    (index % NUMBERS) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks() -> Tasks {
        Tasks::new(&Machine::load("server-2s").unwrap())
    }

    fn named(pid: u32, comm: &str) -> Named {
        Named { pid, comm: comm.to_owned() }
    }

    fn loads(loads: u64) -> Counts {
        Counts { loads, ..Counts::default() }
    }

    #[test]
    fn a_task_gets_what_was_counted_while_it_ran() {
        let mut tasks = tasks();
        tasks.switch(0, &named(0, "swapper/0"), &named(7, ""));
        tasks.settle(0, loads(10), Mode::User);
        tasks.settle(0, loads(13), Mode::Kernel);
        tasks.switch(0, &named(7, "seven"), &named(0, ""));
        tasks.settle(0, loads(20), Mode::Kernel);
        let region = tasks.of_region();
        let names: Vec<&str> = region.iter().map(|task| task.comm.as_str()).collect();
        assert_eq!(names, ["idle", "seven"]);
        assert_eq!((region[1].user.loads, region[1].kernel.loads, region[0].kernel.loads), (10, 3, 7));
    }

    #[test]
    fn what_was_counted_before_the_first_switch_is_the_tasks_that_left() {
        let mut tasks = tasks();
        tasks.settle(1, loads(5), Mode::User);
        tasks.switch(1, &named(9, "nine"), &named(0, ""));
        assert_eq!(tasks.of_region().iter().find(|task| task.pid == 9).unwrap().user.loads, 5);
    }

    #[test]
    fn a_cpu_that_never_switched_idled() {
        let mut tasks = tasks();
        tasks.settle(3, loads(5), Mode::Kernel);
        assert_eq!(tasks.of_region()[0].kernel.loads, 5);
    }

    #[test]
    fn moves_are_counted_by_how_far_they_go() {
        let mut tasks = tasks();
        let far = tasks.cpus.len() - 1;
        for cpu in [0, 1, far, far] {
            let arrived = tasks.switch(cpu, &named(0, ""), &named(7, ""));
            assert_eq!(arrived.moved, cpu == 1 || (cpu == far && tasks.all[1].task.switches == 3));
            tasks.switch(cpu, &named(7, "seven"), &named(0, ""));
        }
        let region = tasks.of_region();
        let seven = &region[1];
        assert_eq!((seven.switches, seven.cpu_moves), (4, 2));
        assert_eq!((seven.domain_moves, seven.node_moves), (1, 1));
        assert_eq!(region[0].cpu_moves, 0, "idle tasks stay");
    }

    #[test]
    fn a_region_begins_with_nothing_but_knows_who_runs() {
        let mut tasks = tasks();
        tasks.switch(0, &named(0, ""), &named(7, ""));
        tasks.settle(0, loads(5), Mode::User);
        tasks.begin_region(&[Counts::default(); 32]);
        assert_eq!(tasks.of_region(), []);
        tasks.settle(0, loads(2), Mode::User);
        assert_eq!(tasks.of_region()[0].user.loads, 2);
        assert_ne!(tasks.number_on(0), 0);
    }
}
