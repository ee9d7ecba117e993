//! Orders of tasks on several CPUs, charged unit by unit (section 2.2, figures 2 and 3).
//!
//! The story is the paper's: the first task runs on the first CPU, spawns all others, and ends. No other task
//! starts before that.

use super::{Cache, Held, Task};
use std::collections::BTreeMap;

/// What a CPU is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// `Tr`: the task's fragment is read into the cache.
    Read,
    /// `ex`: the task executes.
    Execute,
    /// `Tw`: what the task leaves in the cache is flushed.
    Write,
}

/// A stretch of time on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The CPU.
    pub cpu: usize,
    /// For which task.
    pub task: usize,
    /// What it does.
    pub doing: Doing,
    /// The first time unit of it, from 0.
    pub start: u64,
    /// How many time units.
    pub units: u64,
}

/// The tasks of the paper's example: v0 spawns v1 to v4 and changes nothing; v0, v2 and v3 use one fragment,
/// v1 and v4 another.
pub fn worked_example() -> Vec<Task> {
    let task = |fragment, writes| Task { execution: 1, fragment, writes };
    vec![task(0, false), task(1, true), task(0, true), task(0, true), task(1, true)]
}

/// Runs tasks as queued, a queue of task numbers for each CPU. Task 0 must be the first of the first queue.
pub fn run(tasks: &[Task], cache: Cache, queues: &[Vec<usize>]) -> Vec<Span> {
    let spawned = tasks.first().map_or(0, |first| cache.read + first.execution);
    let mut spans = Vec::new();
    for (cpu, queue) in queues.iter().enumerate() {
        let mut now = if queue.first() == Some(&0) { 0 } else { spawned };
        let mut held = Held::default();
        let mut last = None;
        let mut spend = |task, doing, units| {
            if units > 0 {
                spans.push(Span { cpu, task, doing, start: now, units });
                now += units;
            }
        };
        for &number in queue {
            let task = &tasks[number];
            let (flush, fill) = cache.switch(held, task);
            spend(last.unwrap_or(number), Doing::Write, flush);
            spend(number, Doing::Read, fill);
            spend(number, Doing::Execute, task.execution);
            held = held.after(task);
            last = Some(number);
        }
        if let Some(last) = last {
            spend(last, Doing::Write, cache.last_flush(held));
        }
    }
    spans
}

/// The last time unit in which a CPU is busy, numbered from 0 as in the paper's figures; 0 if there is none.
pub fn last_busy_unit(spans: &[Span]) -> u64 {
    spans.iter().map(|span| span.start + span.units - 1).max().unwrap_or_default()
}

/// By CPU affinity: tasks are queued on their parent's CPU, and the load balancer moves half of what one queue
/// has more than another, from its end, until no queue is longer by a quarter.
///
/// # Panics
/// Without CPUs.
pub fn by_cpu_affinity(tasks: &[Task], cpus: usize) -> Vec<Vec<usize>> {
    assert!(cpus > 0, "a schedule needs a CPU");
    let mut waiting = vec![Vec::new(); cpus];
    waiting[0] = (1..tasks.len()).collect();
    loop {
        let busiest = (0..cpus).rev().max_by_key(|&cpu| waiting[cpu].len()).unwrap_or_default();
        let least = (0..cpus).min_by_key(|&cpu| waiting[cpu].len()).unwrap_or_default();
        let (most, fewest) = (waiting[busiest].len(), waiting[least].len());
        let count = (most - fewest) / 2;
        if count == 0 || 4 * most < 5 * fewest {
            break;
        }
        let moved = waiting[busiest].split_off(most - count);
        waiting[least].extend(moved);
    }
    with_first(tasks, waiting)
}

/// By data affinity: a new fragment gets the CPU with the fewest tasks, where all its tasks go; on a CPU, the
/// tasks of a fragment follow each other (section 4.1).
///
/// # Panics
/// Without CPUs.
pub fn by_data_affinity(tasks: &[Task], cpus: usize) -> Vec<Vec<usize>> {
    assert!(cpus > 0, "a schedule needs a CPU");
    let mut batches: BTreeMap<usize, (usize, Vec<usize>)> = BTreeMap::new();
    let mut load = vec![0; cpus];
    for (number, task) in tasks.iter().enumerate() {
        let least = (0..cpus).min_by_key(|&cpu| load[cpu]).unwrap_or_default();
        let (cpu, batch) = batches.entry(task.fragment).or_insert((least, Vec::new()));
        load[*cpu] += 1;
        batch.push(number);
    }
    let mut ordered: Vec<_> = batches.into_values().collect();
    ordered.sort_by_key(|(_, batch)| batch[0]);
    let mut queues = vec![Vec::new(); cpus];
    ordered.into_iter().for_each(|(cpu, batch)| queues[cpu].extend(batch));
    queues
}

fn with_first(tasks: &[Task], mut queues: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    if !tasks.is_empty() {
        queues[0].insert(0, 0);
    }
    queues
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CACHE: Cache = Cache { read: 4, write: 4 };

    /// As the paper draws it: what, for whom, from when to when.
    fn figure(queues: &[Vec<usize>]) -> Vec<String> {
        let drawn = |span: &Span| {
            let what = match span.doing {
                Doing::Read => "Tr",
                Doing::Execute => "ex",
                Doing::Write => "Tw",
            };
            let Span { cpu, task, start, units, .. } = span;
            format!("P{} {what}(v{task}) {start}-{}", cpu + 1, start + units - 1)
        };
        run(&worked_example(), CACHE, queues).iter().map(drawn).collect()
    }

    #[test]
    fn cpu_affinity_is_figure_2() {
        let expected = [
            "P1 Tr(v0) 0-3",
            "P1 ex(v0) 4-4",
            "P1 Tr(v1) 5-8",
            "P1 ex(v1) 9-9",
            "P1 Tw(v1) 10-13",
            "P1 Tr(v2) 14-17",
            "P1 ex(v2) 18-18",
            "P1 Tw(v2) 19-22",
            "P2 Tr(v3) 5-8",
            "P2 ex(v3) 9-9",
            "P2 Tw(v3) 10-13",
            "P2 Tr(v4) 14-17",
            "P2 ex(v4) 18-18",
            "P2 Tw(v4) 19-22",
        ];
        assert_eq!(figure(&by_cpu_affinity(&worked_example(), 2)), expected);
    }

    #[test]
    fn data_affinity_is_figure_3() {
        let expected = [
            "P1 Tr(v0) 0-3",
            "P1 ex(v0) 4-4",
            "P1 ex(v2) 5-5",
            "P1 ex(v3) 6-6",
            "P1 Tw(v3) 7-10",
            "P2 Tr(v1) 5-8",
            "P2 ex(v1) 9-9",
            "P2 ex(v4) 10-10",
            "P2 Tw(v4) 11-14",
        ];
        assert_eq!(figure(&by_data_affinity(&worked_example(), 2)), expected);
    }

    fn tasks() -> impl Strategy<Value = Vec<Task>> {
        let task = (1..5u64, 0..4usize, any::<bool>());
        let task = task.prop_map(|(execution, fragment, writes)| Task { execution, fragment, writes });
        proptest::collection::vec(task, 0..20)
    }

    proptest! {
        #[test]
        fn every_task_is_queued_once_and_the_first_runs_first(tasks in tasks(), cpus in 1..5usize) {
            for queues in [by_cpu_affinity(&tasks, cpus), by_data_affinity(&tasks, cpus)] {
                let mut all: Vec<usize> = queues.concat();
                all.sort_unstable();
                prop_assert_eq!(all, (0..tasks.len()).collect::<Vec<_>>());
                prop_assert_eq!(queues[0].first(), (!tasks.is_empty()).then_some(&0));
            }
        }

        #[test]
        fn no_fragment_is_on_two_cpus_or_read_twice_under_data_affinity(tasks in tasks(), cpus in 1..5usize) {
            let spans = run(&tasks, CACHE, &by_data_affinity(&tasks, cpus));
            let mut read: Vec<usize> =
                spans.iter().filter(|span| span.doing == Doing::Read).map(|span| tasks[span.task].fragment).collect();
            let all = read.len();
            read.sort_unstable();
            read.dedup();
            prop_assert_eq!(read.len(), all);
        }
    }
}
