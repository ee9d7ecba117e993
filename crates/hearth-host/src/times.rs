//! For how long tasks have run and waited, as the thread that plans sees it in one pass over all of them: for
//! services beside the scheduler, which need not read `/proc` then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A task's times since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskTimes {
    /// Its thread id.
    pub tid: i32,
    /// The process that it is of.
    pub process: i32,
    /// CPU time that it has had.
    pub ran_ns: u64,
    /// Time that it has waited for a CPU.
    pub waited_ns: u64,
}

/// All tasks at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// When, by [`crate::clock::now_ns`].
    pub at_ns: u64,
    /// In any order.
    pub tasks: Vec<TaskTimes>,
}

/// What the tasks of a process did from one pass to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// CPU time.
    pub ran_ns: u64,
    /// Time for which they waited for CPUs.
    pub waited_ns: u64,
}

impl Pass {
    /// What each process has spent since an earlier pass. A task that was not there then has spent all it has.
    pub fn since(&self, before: &Self) -> HashMap<i32, Spent> {
        let known: HashMap<i32, &TaskTimes> = before.tasks.iter().map(|task| (task.tid, task)).collect();
        let mut all: HashMap<i32, Spent> = HashMap::new();
        for task in &self.tasks {
            let then = known.get(&task.tid).filter(|then| then.process == task.process);
            let [ran_ns, waited_ns] = then.map_or([0; 2], |then| [then.ran_ns, then.waited_ns]);
            let spent = all.entry(task.process).or_default();
            spent.ran_ns = spent.ran_ns.saturating_add(task.ran_ns.saturating_sub(ran_ns));
            spent.waited_ns = spent.waited_ns.saturating_add(task.waited_ns.saturating_sub(waited_ns));
        }
        all
    }
}

/// The last pass, between the thread that makes it and those that use it.
#[derive(Clone, Debug, Default)]
pub struct Times(Arc<Mutex<Option<Arc<Pass>>>>);

impl Times {
    /// Tells a new one.
    pub fn tell(&self, pass: Pass) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(pass));
    }

    /// The last one; none where nobody makes any.
    pub fn last(&self) -> Option<Arc<Pass>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(tasks: &[(i32, i32, u64, u64)]) -> Pass {
        let task = |&(tid, process, ran_ns, waited_ns)| TaskTimes { tid, process, ran_ns, waited_ns };
        Pass { at_ns: 0, tasks: tasks.iter().map(task).collect() }
    }

    #[test]
    fn a_process_spends_what_its_tasks_do_and_those_that_are_new_all_that_they_have() {
        let before = pass(&[(1, 1, 100, 10), (2, 1, 50, 0), (3, 3, 7, 7)]);
        let after = pass(&[(1, 1, 130, 10), (4, 1, 5, 2), (3, 9, 8, 8)]);
        let spent = after.since(&before);
        assert_eq!(spent[&1], Spent { ran_ns: 35, waited_ns: 2 });
        assert_eq!(spent[&9], Spent { ran_ns: 8, waited_ns: 8 }, "a number that another process has now");
        assert_eq!(spent.len(), 2);
    }

    #[test]
    fn who_shares_it_sees_the_last_one() {
        let times = Times::default();
        assert_eq!(times.last(), None);
        let reader = times.clone();
        times.tell(pass(&[(1, 1, 1, 1)]));
        assert_eq!(reader.last().as_deref(), Some(&pass(&[(1, 1, 1, 1)])));
    }
}
