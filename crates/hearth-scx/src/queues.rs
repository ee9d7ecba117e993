//! Dispatch queues.

use crate::task::Pid;
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
    /// What is left of each walk; none where a walk has ended before an older one.
    walks: Vec<Option<VecDeque<Pid>>>,
}

impl DispatchQueues {
    /// A walk over the tasks that are there now; its number, from 1.
    pub(crate) fn walk(&mut self, id: u64) -> usize {
        let members = self.by_id.get(&id).map(|queue| queue.iter().collect()).unwrap_or_default();
        self.walks.push(Some(members));
        self.walks.len()
    }

    pub(crate) fn walk_next(&mut self, walk: usize) -> Option<Pid> {
        self.walks.get_mut(walk - 1)?.as_mut()?.pop_front()
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
