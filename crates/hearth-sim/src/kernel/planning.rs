//! The loop's slow half, at simulated times: snapshot, controller, publication. It takes no CPU from anybody.

use super::Kernel;
use crate::measure::Planned;
use hearth_native::Board;
use hearth_policy::snapshot::{CpuSet, State, Task};
use hearth_policy::{Controller, Snapshot};
use std::io::Error;

/// Who plans, and for which scheduler.
pub(super) struct Planning {
    controller: Controller,
    board: Board,
    planned: Planned,
}

impl Planning {
    /// What came of it.
    pub(super) fn end(self) -> Planned {
        self.planned
    }
}

impl Kernel {
    /// From now on a controller plans, whenever [`plan`](Self::plan) is called.
    pub(crate) fn plan_with(&mut self, controller: Controller) -> Result<(), Error> {
        let board = self.scx.scheduler().board()?;
        let names: Vec<&str> = controller.names().collect();
        let planned = Planned { planner: names.join(", "), ..Planned::default() };
        self.planning = Some(Planning { controller, board, planned });
        Ok(())
    }

    /// Whether somebody plans.
    pub(crate) fn has_planner(&self) -> bool {
        self.planning.is_some()
    }

    /// One step. If it leads to no plan, the one in force ends when its time is over.
    pub(crate) fn plan(&mut self, at_ns: u64) {
        let Some(Planning { mut controller, mut board, mut planned }) = self.planning.take() else { return };
        match controller.step(&self.snapshot(at_ns)) {
            Ok(plan) => {
                let holds_for = Controller::STEP * Controller::STEPS_TO_HOLD;
                let outcome = board.publish(&plan, at_ns + holds_for.as_nanos() as u64);
                planned.count(&plan, outcome);
            }
            Err(error) => planned.fail(&error),
        }
        self.planning = Some(Planning { controller, board, planned });
    }

    /// The scheduler has been loaded anew, and knows no plan.
    pub(super) fn plan_for_another(&mut self) -> Result<(), Error> {
        if let Some(planning) = &mut self.planning {
            planning.board = self.scx.scheduler().board()?;
        }
        Ok(())
    }

    /// What the tasks of sched_ext do. The group of a task is its application, counted from 1; each task is a
    /// process of its own.
    fn snapshot(&self, at_ns: u64) -> Snapshot {
        let online = cpus(self.scx.online());
        let place = |cpu| (cpu, self.domain_of[cpu], self.node_of[cpu]);
        let mut snapshot = Snapshot::new(at_ns, online.into_iter().map(place));
        for task in self.tasks.iter().filter(|task| !task.is_dead && !task.is_higher()) {
            let sched = &task.scx.sched;
            let mask = snapshot.mask(cpus(sched.allowed()));
            snapshot.add(Task {
                tid: sched.pid,
                process: sched.tgid,
                parent: 0,
                group: sched.group.get(),
                weight: sched.weight.get(),
                cpu: task.scx.cpu(),
                mask,
                state: if sched.on_cpu.get() != 0 {
                    State::Running
                } else if task.scx.waits_since_ps().is_some() {
                    State::Waiting
                } else {
                    State::Asleep
                },
                usage_ns: self.scx.remembered(&task.scx).map_or(0, |remembered| remembered.usage),
                ran_ns: sched.sum_exec_ns.get(),
                waited_ns: task.scx.waited_ps() / 1000,
            });
        }
        snapshot
    }
}

/// CPUs that are given as bits.
fn cpus(bits: u64) -> CpuSet {
    (0..u64::BITS as usize).filter(|cpu| bits >> cpu & 1 == 1).collect()
}
