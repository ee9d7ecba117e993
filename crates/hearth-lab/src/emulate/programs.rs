//! What each program did: tasks by their names, wherever and whenever they ran.

use super::comparison::{Comparison, SchedulerRuns};
use super::summary::{cpu_ms, is_idle, kernel_percent};
use hearth_emulate::Run;
use hearth_emulate::counts::Task;
use hearth_report::Figure;
use std::collections::BTreeMap;

/// Programs with less of the CPU time than this under every scheduler are one row.
const LEAST_SHARE: f64 = 0.01;
/// How the kernel's own threads are called together, and programs with little CPU time.
const KERNEL_THREADS: &str = "(kernel threads)";
const OTHERS: &str = "(others)";

/// A program's figures under one scheduler: means over the seeds.
pub struct Row {
    /// CPU time in ms.
    pub cpu_ms: Figure,
    /// Of this, in the kernel.
    pub kernel_percent: Figure,
    pub misses: Figure,
    pub switches: Figure,
    pub cpu_moves: Figure,
}

/// Totals of a run by name, with the picoseconds of a cycle.
type ByName = (u64, BTreeMap<String, Task>);

/// Each program with its rows, one for each scheduler, those with the most CPU time first.
pub fn programs(comparison: &Comparison) -> Vec<(String, Vec<Row>)> {
    let runs_of = |scheduler: &SchedulerRuns| scheduler.runs.iter().map(by_name).collect();
    let mut schedulers: Vec<Vec<ByName>> = comparison.schedulers.iter().map(runs_of).collect();
    let shares = greatest_shares(&schedulers);
    let is_small = |name: &str| name != KERNEL_THREADS && shares[name] < LEAST_SHARE;
    schedulers.iter_mut().flatten().for_each(|(_, totals)| gather(totals, is_small));

    let (small, mut names): (Vec<_>, Vec<_>) = shares.iter().partition(|(name, _)| is_small(name));
    names.sort_by(|a, b| b.1.total_cmp(a.1));
    let others = (!small.is_empty()).then(|| OTHERS.to_owned());
    let names = names.into_iter().map(|(name, _)| name.clone()).chain(others);
    names.map(|name| (name.clone(), schedulers.iter().map(|runs| row(&name, runs)).collect())).collect()
}

fn by_name(run: &Run) -> ByName {
    let mut groups: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
    for task in run.region.tasks.iter().filter(|task| !is_idle(task)) {
        let is_program = task.user.instructions > 0;
        groups.entry(if is_program { &task.comm } else { KERNEL_THREADS }).or_default().push(task);
    }
    let totals = groups.into_iter().map(|(name, tasks)| (name.to_owned(), Task::sum(tasks)));
    (run.cycle_ps, totals.collect())
}

/// What part of a run's CPU time each program has where it has most.
fn greatest_shares(schedulers: &[Vec<ByName>]) -> BTreeMap<String, f64> {
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    for (cycle_ps, totals) in schedulers.iter().flatten() {
        let all_ms: f64 = totals.values().map(|total| cpu_ms(total, *cycle_ps)).sum();
        for (name, total) in totals {
            let share = shares.entry(name.clone()).or_default();
            *share = share.max(cpu_ms(total, *cycle_ps) / all_ms);
        }
    }
    shares
}

/// Makes one of the small ones.
fn gather(totals: &mut BTreeMap<String, Task>, is_small: impl Fn(&str) -> bool) {
    let names: Vec<String> = totals.keys().filter(|name| is_small(name)).cloned().collect();
    let small: Vec<Task> = names.iter().filter_map(|name| totals.remove(name)).collect();
    totals.insert(OTHERS.to_owned(), Task::sum(&small));
}

fn row(name: &str, runs: &[ByName]) -> Row {
    let figure = |measure: &dyn Fn(u64, &Task) -> f64| {
        let value =
            |(cycle_ps, totals): &ByName| totals.get(name).map_or(0.0, |total| measure(*cycle_ps, total));
        Figure::of(runs.iter().map(value))
    };
    Row {
        cpu_ms: figure(&|cycle_ps, total| cpu_ms(total, cycle_ps)),
        kernel_percent: figure(&|cycle_ps, total| kernel_percent(total, cycle_ps)),
        misses: figure(&|_, total| total.total().llc_misses() as f64),
        switches: figure(&|_, total| total.switches as f64),
        cpu_moves: figure(&|_, total| total.cpu_moves as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::super::comparison::tests::comparison;
    use super::*;

    #[test]
    fn threads_of_the_kernel_are_one_row_and_come_by_their_time() {
        let found = programs(&comparison(&[("kernel", &[(8, 1)]), ("a", &[(3, 1), (5, 1)])]));
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["sort", KERNEL_THREADS]);
        let sort = &found[0].1;
        assert_eq!((sort[0].cpu_ms.mean, sort[1].cpu_ms.mean), (9.0, 5.0));
        assert_eq!(found[1].1[0].kernel_percent.mean, 100.0);
    }

    #[test]
    fn programs_with_hardly_any_time_are_one_row() {
        let found = programs(&comparison(&[("kernel", &[(1000, 1)])]));
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["sort", KERNEL_THREADS]);
        let mut small = comparison(&[("kernel", &[(1000, 1)])]);
        let sort = small.schedulers[0].runs[0].region.tasks[1].clone();
        let user = hearth_emulate::counts::Counts { instructions: 9, ..Default::default() };
        small.schedulers[0].runs[0].region.tasks.push(Task { comm: "sh".into(), user, ..sort });
        let last = programs(&small).pop().unwrap();
        assert_eq!(last.0, OTHERS);
    }
}
