//! Dispatch queues.

use crate::task::{Pid, Place};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A queue that is served first come, or by vtime and first come among equals. Never both.
#[derive(Default)]
pub(crate) struct DispatchQueue {
    fifo: VecDeque<Pid>,
    by_vtime: BTreeSet<(u64, u64, Pid)>,
}

impl DispatchQueue {
    pub(crate) fn insert(&mut self, pid: Pid, vtime: Option<u64>, sequence: u64) -> Result<(), &'static str> {
        match vtime {
            Some(_) if !self.fifo.is_empty() => Err("FIFO"),
            None if !self.by_vtime.is_empty() => Err("PRIQ"),
            Some(vtime) => {
                self.by_vtime.insert((vtime, sequence, pid));
                Ok(())
            }
            None => {
                self.fifo.push_back(pid);
                Ok(())
            }
        }
    }

    pub(crate) fn remove(&mut self, pid: Pid, key: (u64, u64)) {
        if !self.by_vtime.remove(&(key.0, key.1, pid)) {
            self.fifo.retain(|&other| other != pid);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Pid> {
        self.fifo.iter().copied().chain(self.by_vtime.iter().map(|&(_, _, pid)| pid))
    }

    pub(crate) fn len(&self) -> usize {
        self.fifo.len() + self.by_vtime.len()
    }
}

/// All of them, and the walks over them.
#[derive(Default)]
pub(crate) struct DispatchQueues {
    pub(crate) by_id: BTreeMap<u64, DispatchQueue>,
    /// None where a walk has ended before an older one.
    walks: Vec<Option<Walk>>,
}

/// A walk over the tasks that were in a queue when it began.
struct Walk {
    id: u64,
    /// Who came to a queue later has this number, or a greater one.
    began: u64,
    left: VecDeque<Pid>,
}

impl DispatchQueues {
    /// A walk over the tasks that are there now; its number, from 1.
    pub(crate) fn walk(&mut self, id: u64, began: u64) -> usize {
        let left = self.by_id.get(&id).map(|queue| queue.iter().collect()).unwrap_or_default();
        self.walks.push(Some(Walk { id, began, left }));
        self.walks.len()
    }

    /// The next of those that were there; it may have left.
    pub(crate) fn walk_next(&mut self, walk: usize) -> Option<Pid> {
        self.walks.get_mut(walk - 1)?.as_mut()?.left.pop_front()
    }

    /// Whether a task that waits here has done so since before a walk began, in the walk's queue.
    pub(crate) fn is_walked(&self, walk: usize, place: Place) -> bool {
        let Some(Some(walk)) = self.walks.get(walk - 1) else { return false };
        matches!(place, Place::Queue { id, key: (_, sequence) } if id == walk.id && sequence < walk.began)
    }

    pub(crate) fn walk_ends(&mut self, walk: usize) {
        if let Some(walk) = self.walks.get_mut(walk - 1) {
            *walk = None;
        }
        while self.walks.last().is_some_and(Option::is_none) {
            self.walks.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(tasks: &[(Pid, Option<u64>)]) -> DispatchQueue {
        let mut queue = DispatchQueue::default();
        for (sequence, &(pid, vtime)) in (0..).zip(tasks) {
            assert_eq!(queue.insert(pid, vtime, sequence), Ok(()));
        }
        queue
    }

    #[test]
    fn a_queue_is_served_by_vtime_and_first_come_among_equals() {
        let mut queue = queue(&[(0, Some(5)), (1, Some(3)), (2, Some(5)), (3, Some(3))]);
        assert_eq!(queue.iter().collect::<Vec<_>>(), [1, 3, 0, 2]);
        queue.remove(3, (3, 3));
        assert_eq!((queue.iter().collect::<Vec<_>>(), queue.len()), (vec![1, 0, 2], 3));
    }

    #[test]
    fn a_queue_may_not_mix_fifo_and_vtime() {
        assert_eq!(queue(&[(0, None)]).insert(1, Some(3), 1), Err("FIFO"));
        assert_eq!(queue(&[(0, Some(3))]).insert(1, None, 1), Err("PRIQ"));
    }

    #[test]
    fn a_walk_sees_the_tasks_that_were_there_when_it_began() {
        let mut queues = DispatchQueues::default();
        queues.by_id.insert(1, queue(&[(0, None), (1, None)]));
        let (first, second) = (queues.walk(1, 2), queues.walk(1, 2));
        if let Some(queue) = queues.by_id.get_mut(&1) {
            queue.remove(1, (0, 1));
        }
        assert_eq!(queues.walk_next(second), Some(0));
        queues.walk_ends(first);
        assert_eq!([queues.walk_next(second), queues.walk_next(second)], [Some(1), None]);
        assert_eq!(queues.walk_next(first), None);
        let waits = |id, sequence| Place::Queue { id, key: (0, sequence) };
        assert!(queues.is_walked(second, waits(1, 0)));
        for other in [waits(2, 0), waits(1, 2), Place::Local(0), Place::Nowhere] {
            assert!(!queues.is_walked(second, other), "it has left, or has come back: {other:?}");
        }
        queues.walk_ends(second);
        assert_eq!(queues.walk(1, 2), 1, "walks that have ended leave nothing");
    }
}
