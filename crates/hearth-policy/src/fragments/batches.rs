//! One CPU: which order of tasks costs least (section 3).
//!
//! The algorithm puts each task into the bin of its fragment and runs bin after bin. It reads each fragment
//! once and flushes it once if any task changed it; no order can do with less.

use super::{Cache, Held, Task};

/// An order of tasks, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batched {
    /// The tasks, bin by bin.
    pub order: Vec<usize>,
    /// How often a task was put into a bin, taken out, or a bin was opened: at most three times for each task.
    pub steps: usize,
}

/// Batches tasks by fragment, in time linear in their number. Fragments are below the number of tasks.
///
/// # Panics
/// If a fragment's number is not.
pub fn batch(tasks: &[Task]) -> Batched {
    let mut bins: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
    for (number, task) in tasks.iter().enumerate() {
        bins[task.fragment].push(number);
    }
    let mut batched = Batched { order: Vec::with_capacity(tasks.len()), steps: tasks.len() + bins.len() };
    for bin in bins {
        batched.steps += bin.len();
        batched.order.extend(bin);
    }
    batched
}

/// Time that one CPU takes for tasks in this order, from an empty cache to a clean one.
pub fn time<'a>(cache: Cache, order: impl IntoIterator<Item = &'a Task>) -> u64 {
    let mut held = Held::default();
    let mut sum = 0;
    for task in order {
        let (flush, fill) = cache.switch(held, task);
        sum += flush + fill + task.execution;
        held = held.after(task);
    }
    sum + cache.last_flush(held)
}

/// The least time of all orders, by trying them all: an oracle for few tasks.
pub fn least_time(cache: Cache, tasks: &[Task]) -> u64 {
    let mut rest = tasks.to_vec();
    rest.sort_unstable();
    let mut search = Search { cache, rest, least: u64::MAX };
    search.go_on(Held::default(), 0);
    search.least
}

/// The tasks that are not yet in the order, sorted, and the least time so far.
struct Search {
    cache: Cache,
    rest: Vec<Task>,
    least: u64,
}

impl Search {
    /// Tries each kind of task that is left as the next one; tasks that are alike are one kind.
    fn go_on(&mut self, held: Held, time: u64) {
        if self.rest.is_empty() {
            self.least = self.least.min(time + self.cache.last_flush(held));
        }
        for at in 0..self.rest.len() {
            if at > 0 && self.rest[at] == self.rest[at - 1] {
                continue;
            }
            let task = self.rest.remove(at);
            let (flush, fill) = self.cache.switch(held, &task);
            self.go_on(held.after(&task), time + flush + fill + task.execution);
            self.rest.insert(at, task);
        }
    }
}

/// All sets of up to `most` tasks on up to `fragments` fragments that differ in what they cost: how many read
/// and how many write each fragment. Each task executes for one unit, which no order changes.
pub fn all_cases(most: usize, fragments: usize) -> Vec<Vec<Task>> {
    let kinds: Vec<Task> = (0..fragments)
        .flat_map(|fragment| [false, true].map(|writes| Task { execution: 1, fragment, writes }))
        .collect();
    let mut cases = vec![Vec::new()];
    let mut longest = cases.clone();
    for _ in 0..most {
        let longer = |case: &Vec<Task>| {
            let from = case.last().map_or(0, |last| kinds.iter().position(|kind| kind == last).unwrap_or(0));
            let grown = kinds[from..].iter().map(|&kind| [case.as_slice(), &[kind]].concat());
            grown.collect::<Vec<_>>()
        };
        longest = longest.iter().flat_map(longer).collect();
        cases.extend(longest.iter().cloned());
    }
    cases.retain(|case| case.iter().all(|task| task.fragment < case.len()));
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CACHE: Cache = Cache { read: 4, write: 3 };

    fn batched_time(tasks: &[Task]) -> u64 {
        time(CACHE, batch(tasks).order.iter().map(|&number| &tasks[number]))
    }

    #[test]
    fn batching_is_optimal_in_all_cases_of_six_tasks_and_three_fragments() {
        let wrong = all_cases(6, 3).into_iter().find(|case| batched_time(case) != least_time(CACHE, case));
        assert_eq!(wrong, None);
    }

    #[test]
    fn an_order_that_goes_back_to_a_fragment_costs_more() {
        let tasks = [0, 1, 0].map(|fragment| Task { execution: 1, fragment, writes: true });
        assert_eq!((time(CACHE, &tasks), batched_time(&tasks)), (3 + 3 * 7, 3 + 2 * 7));
    }

    #[test]
    fn cases_of_three_tasks_are_all_there() {
        let task = |fragment, writes| Task { execution: 1, fragment, writes };
        let cases = all_cases(3, 3);
        assert!(cases.contains(&vec![task(0, false), task(1, true), task(2, false)]));
        assert!(cases.contains(&vec![task(1, true); 3]) && cases.contains(&Vec::new()));
    }

    proptest! {
        #[test]
        fn steps_are_three_for_each_task(fragments in proptest::collection::vec(0..1usize << 16, 0..2000)) {
            let count = fragments.len().max(1);
            let task = |fragment| Task { execution: 1, fragment: fragment % count, writes: true };
            let tasks: Vec<Task> = fragments.into_iter().map(task).collect();
            prop_assert_eq!(batch(&tasks).steps, 3 * tasks.len());
        }
    }
}
