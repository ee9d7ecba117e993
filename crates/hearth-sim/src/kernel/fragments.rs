//! What programs declare of the data that they work on, as the library on Linux passes it on: a word of the
//! task's own, which the scheduler reads, and a system call only where the task may not be at the data's home.

use super::Kernel;
use crate::program::TaskId;
use std::collections::HashMap;

/// Where each application last found its fragments.
#[derive(Default)]
pub(super) struct Found(HashMap<(usize, u64), usize>);

impl Kernel {
    /// A task declares the data that it is about to work on; 0 for none. Whether it shall yield, to be moved to
    /// where that lives.
    pub(crate) fn declare(&mut self, task: TaskId, cpu: usize, fragment: u64) -> bool {
        if !self.follows_fragments {
            return false;
        }
        let task = &self.tasks[task];
        task.scx.sched.declared.set(fragment);
        fragment != 0 && self.found.0.get(&(task.application, fragment)) != Some(&cpu)
    }

    /// A task is where the scheduler wants it for what it has declared.
    pub(crate) fn found(&mut self, task: TaskId, cpu: usize) {
        let task = &self.tasks[task];
        self.found.0.insert((task.application, task.scx.sched.declared.get()), cpu);
    }
}
