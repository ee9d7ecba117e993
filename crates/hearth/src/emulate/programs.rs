//! What each program did: tasks by their names, wherever and whenever they ran.

use super::comparison::{Comparison, Total, is_idle};
use hearth_emulate::Run;
use hearth_emulate::counts::Task;
use hearth_lab::report::Figure;
use std::collections::BTreeMap;

/// Programs with less of the CPU time than this under every scheduler are one row.
const LEAST_SHARE: f64 = 0.005;
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

/// Each program with its rows, one for each scheduler, those with the most CPU time first.
pub fn programs(comparison: &Comparison) -> Vec<(String, Vec<Row>)> {
    let by_program: Vec<Vec<(u64, BTreeMap<String, Total>)>> = comparison
        .schedulers
        .iter()
        .map(|scheduler| scheduler.runs.iter().map(|run| (run.cycle_ps, by_name(run))).collect())
        .collect();
    let rows = names(&by_program).into_iter().map(|name| {
        let rows = by_program.iter().map(|runs| row(&name, runs)).collect();
        (name, rows)
    });
    rows.collect()
}

/// The tasks of a run by name, the smallest together.
fn by_name(run: &Run) -> BTreeMap<String, Total> {
    let tasks: Vec<&Task> = run.region.tasks.iter().filter(|task| !is_idle(task)).collect();
    let mut groups: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
    for task in &tasks {
        let is_program = task.user.instructions > 0;
        groups.entry(if is_program { &task.comm } else { KERNEL_THREADS }).or_default().push(task);
    }
    let least_ms = Total::of(tasks.iter().copied()).cpu_ms(run.cycle_ps) * LEAST_SHARE;
    let mut others = Vec::new();
    let mut totals = BTreeMap::new();
    for (name, tasks) in groups {
        let total = Total::of(tasks.iter().copied());
        if name == KERNEL_THREADS || total.cpu_ms(run.cycle_ps) >= least_ms {
            totals.insert(name.to_owned(), total);
        } else {
            others.extend(tasks);
        }
    }
    if !others.is_empty() {
        totals.insert(OTHERS.to_owned(), Total::of(others));
    }
    totals
}

fn names(by_program: &[Vec<(u64, BTreeMap<String, Total>)>]) -> Vec<String> {
    let mut most_ms: BTreeMap<&str, f64> = BTreeMap::new();
    for (cycle_ps, totals) in by_program.iter().flatten() {
        for (name, total) in totals {
            let most = most_ms.entry(name).or_default();
            *most = most.max(total.cpu_ms(*cycle_ps));
        }
    }
    let mut names: Vec<(&str, f64)> = most_ms.into_iter().collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    names.into_iter().map(|(name, _)| name.to_owned()).collect()
}

fn row(name: &str, runs: &[(u64, BTreeMap<String, Total>)]) -> Row {
    let figure = |measure: &dyn Fn(u64, &Total) -> f64| {
        let value = |(cycle_ps, totals): &(u64, BTreeMap<String, Total>)| {
            totals.get(name).map_or(0.0, |total| measure(*cycle_ps, total))
        };
        Figure::of(runs.iter().map(value))
    };
    Row {
        cpu_ms: figure(&|cycle_ps, total| total.cpu_ms(cycle_ps)),
        kernel_percent: figure(&|cycle_ps, total| total.kernel_percent(cycle_ps)),
        misses: figure(&|_, total| total.counts().llc_misses() as f64),
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
