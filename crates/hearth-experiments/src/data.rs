//! What the data-affinity paper ("Thread Scheduling Based on Data Affinity") claims: of its model (sections 2
//! and 3), and of programs that declare their data (section 5).

use crate::experiment::Measure;
use crate::job::Run;
use crate::numa::copies;
use hearth_policy::fragments::{Cache, Task, batches, schedule};
use hearth_sim::measure::Tally;
use std::sync::LazyLock;

/// The example's `T_r` and `T_w`.
const CACHE: Cache = Cache { read: 4, write: 4 };
const CPUS: usize = 2;
/// Cases of one CPU that are searched exhaustively.
const TASKS: usize = 8;
const FRAGMENTS: usize = 3;
/// Numbers of tasks for which batching is compared: it is linear if the larger takes as many steps a task.
const FEW: usize = 1_000;
const MANY: usize = 1_000_000;

/// By parent's CPU and load balancer; by fragment.
const CPU_AFFINITY: &str = "cpu-affinity";
const DATA_AFFINITY: &str = "data-affinity";
/// By fragment, on one CPU; as they come.
const BATCHED: &str = "batched";
const AS_THEY_COME: &str = "as-they-come";

/// Orders of tasks that a measure of the model can name.
pub(crate) const ORDERS: [&str; 4] = [CPU_AFFINITY, DATA_AFFINITY, BATCHED, AS_THEY_COME];

/// The value of such a measure, from the runs that it needs.
pub(crate) fn value(measure: &Measure, runs: &[&Run]) -> Option<f64> {
    match measure {
        Measure::LastBusyUnit { order } => last_busy_unit(order),
        Measure::OptimalCases { order } => optimal_cases(order),
        Measure::BatchingSteps => Some(steps_a_task(MANY) / steps_a_task(FEW)),
        Measure::L2MissesDivided { application, .. } => divided(l2_misses, application.as_deref(), runs),
        Measure::L3MissesDivided { application, .. } => divided(l3_misses, application.as_deref(), runs),
        Measure::OwnL2MissesDivided { application, .. } => {
            divided(own_l2_misses, application.as_deref(), runs)
        }
        Measure::TimeChangeBeyond { .. } => {
            Some(time_change(runs[0], runs[1]) - time_change(runs[2], runs[3]))
        }
        Measure::TimeSaved { .. } => Some(time_saved(runs[0], runs[1])),
        Measure::TimeSavedBeyond { .. } => Some(time_saved(runs[0], runs[1]) - time_saved(runs[2], runs[3])),
        _ => None,
    }
}

fn last_busy_unit(order: &str) -> Option<f64> {
    let tasks = schedule::worked_example();
    let queues = match order {
        CPU_AFFINITY => schedule::by_cpu_affinity(&tasks, CPUS),
        DATA_AFFINITY => schedule::by_data_affinity(&tasks, CPUS),
        _ => return None,
    };
    Some(schedule::last_busy_unit(&schedule::run(&tasks, CACHE, &queues)) as f64)
}

/// All cases, each with the least time of all its orders.
static CASES: LazyLock<Vec<(Vec<Task>, u64)>> = LazyLock::new(|| {
    let cases = batches::all_cases(TASKS, FRAGMENTS).into_iter();
    cases.map(|case| (batches::least_time(CACHE, &case), case)).map(|(least, case)| (case, least)).collect()
});

/// In percent of all cases, those in which the order is as good as the best.
fn optimal_cases(order: &str) -> Option<f64> {
    let time: fn(&[Task]) -> u64 = match order {
        BATCHED => {
            |case| batches::time(CACHE, batches::batch(case).order.iter().map(|&number| &case[number]))
        }
        // A case lists its tasks by fragment. As they come, fragments take turns.
        AS_THEY_COME => |case| {
            let (first, last) = case.split_at(case.len() / 2);
            let in_turn = first.iter().zip(last).flat_map(|(a, b)| [a, b]);
            batches::time(CACHE, in_turn.chain(last.get(first.len())))
        },
        _ => return None,
    };
    let optimal = CASES.iter().filter(|(case, least)| time(case) == *least).count();
    Some(100.0 * optimal as f64 / CASES.len() as f64)
}

fn steps_a_task(count: usize) -> f64 {
    let task = |number| Task { execution: 1, fragment: number % FRAGMENTS, writes: true };
    let tasks: Vec<Task> = (0..count).map(task).collect();
    batches::batch(&tasks).steps as f64 / count as f64
}

type Misses = fn(&Run, Option<&str>) -> Option<f64>;

fn divided(misses: Misses, application: Option<&str>, runs: &[&Run]) -> Option<f64> {
    Some(misses(runs[1], application)? / misses(runs[0], application)?)
}

/// Misses of the second level, of a program or of all. The third is the last.
pub(crate) fn l2_misses(run: &Run, application: Option<&str>) -> Option<f64> {
    sum(run, application, |tally| tally.counters.llc_hits + tally.counters.misses())
}

/// Misses of the third level.
pub(crate) fn l3_misses(run: &Run, application: Option<&str>) -> Option<f64> {
    sum(run, application, |tally| tally.counters.misses())
}

/// Misses of the second level by the programs' own code.
pub(crate) fn own_l2_misses(run: &Run, application: Option<&str>) -> Option<f64> {
    sum(run, application, |tally| tally.counters.own_l2_misses)
}

fn sum(run: &Run, application: Option<&str>, of: fn(&Tally) -> u64) -> Option<f64> {
    let misses: u64 = match application {
        Some(name) => copies(&run.result.applications, name).map(|(_, result)| of(&result.tally)).sum(),
        None => of(&run.result.total),
    };
    (misses > 0).then_some(misses as f64)
}

fn time_change(run: &Run, base: &Run) -> f64 {
    100.0 * (run.result.mean_execution_ns as f64 / base.result.mean_execution_ns as f64 - 1.0)
}

/// In seconds.
fn time_saved(run: &Run, base: &Run) -> f64 {
    (base.result.mean_execution_ns as f64 - run.result.mean_execution_ns as f64) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_in_which_tasks_come_is_often_not_the_best() {
        assert_eq!(optimal_cases(BATCHED), Some(100.0));
        let as_they_come = optimal_cases(AS_THEY_COME).unwrap();
        assert!(as_they_come < 60.0, "{as_they_come}");
    }
}
