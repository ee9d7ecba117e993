//! The loop's slow half, at simulated times: snapshot, controller, publication. It takes no CPU from anybody.

use super::Kernel;
use super::weighing::Weighing;
use crate::measure::{Place, Places, Planned};
use crate::program::Asked;
use hearth_abi::native::{Board, Outcome};
use hearth_policy::snapshot::{Program, State, Task};
use hearth_policy::{Controller, Plan, Snapshot, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Error;

/// Who plans, and for which scheduler.
pub(super) struct Planning {
    controller: Controller,
    board: Board,
    planned: Planned,
    /// If weights act in place of shares.
    weighing: Option<Weighing>,
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
        self.planning = Some(Planning { controller, board, planned, weighing: None });
        Ok(())
    }

    /// From now on what a plan says of shares acts by weights.
    pub(crate) fn act_by_weights(&mut self) {
        if let Some(planning) = &mut self.planning {
            planning.weighing = Some(Weighing::default());
        }
    }

    /// Whether somebody plans.
    pub(crate) fn has_planner(&self) -> bool {
        self.planning.is_some()
    }

    /// One step. If it leads to no plan, the one in force ends when its time is over.
    pub(crate) fn plan(&mut self, at_ns: u64) {
        let Some(planning) = self.planning.take() else { return };
        let Planning { mut controller, mut board, mut planned, mut weighing } = planning;
        let mut snapshot = self.snapshot(at_ns);
        snapshot.runs = self.runs_to_tell();
        if let Some(weighing) = &weighing {
            weighing.hide(&mut snapshot);
        }
        match controller.step(&snapshot) {
            Ok(mut plan) => {
                if let Some(weighing) = &mut weighing {
                    weighing.weigh(self, &snapshot, &mut plan);
                }
                let holds_for = Controller::STEP * Controller::STEPS_TO_HOLD;
                let outcome = board.publish(&plan, at_ns + holds_for.as_nanos() as u64);
                planned.count(&plan, outcome);
                if outcome == Outcome::Published {
                    self.tell_programs(&plan);
                    planned.follow(Places { at_ns, rows: plan.rows.count, places: self.places(&plan) });
                }
            }
            Err(error) => planned.fail(&error),
        }
        self.planning = Some(Planning { controller, board, planned, weighing });
    }

    /// The scheduler has been loaded anew, and knows no plan.
    pub(super) fn plan_for_another(&mut self) -> Result<(), Error> {
        if let Some(planning) = &mut self.planning {
            planning.board = self.scx.scheduler().board()?;
        }
        Ok(())
    }

    /// A parallel program starts, and asks to be scheduled in some way.
    pub(crate) fn ask(&mut self, application: usize, asked: Asked) {
        self.programs.push((application, asked));
    }

    /// The tasks that a planner knows of, each a process of its own, with their applications.
    fn planned_tasks(&self) -> impl Iterator<Item = &super::Task> {
        self.tasks.iter().filter(|task| !task.is_dead && !task.is_higher())
    }

    fn processes(&self, application: usize) -> BTreeSet<i32> {
        let own = self.planned_tasks().filter(|task| task.application == application);
        own.map(|task| task.scx.sched.tgid).collect()
    }

    /// Tells programs that want to know it how many CPUs they have under a plan.
    fn tell_programs(&self, plan: &Plan) {
        for (application, asked) in &self.programs {
            let Some(tell) = &asked.told else { continue };
            let part = self.processes(*application).iter().find_map(|pid| plan.tasks.get(pid)?.part);
            let set = part.and_then(|part| plan.parts.get(part));
            tell(set.map_or(self.cpus.len(), Vec::len));
        }
    }

    /// Where a plan puts programs that asked.
    fn places(&self, plan: &Plan) -> Vec<Place> {
        let mut places: BTreeMap<(usize, Option<usize>), BTreeSet<usize>> = BTreeMap::new();
        for task in self.planned_tasks() {
            let Some(target) = plan.tasks.get(&task.scx.sched.pid) else { continue };
            let cpus = places.entry((task.application, target.row)).or_default();
            match *target {
                Target { row: Some(_), home: Some(home), .. } => _ = cpus.insert(home),
                Target { part: Some(part), .. } => cpus.extend(&plan.parts[part]),
                _ => {}
            }
        }
        let place = |((application, row), cpus): ((usize, Option<usize>), BTreeSet<usize>)| Place {
            application,
            row,
            cpus: cpus.into_iter().collect(),
        };
        places.into_iter().map(place).collect()
    }

    /// What the tasks of sched_ext do. The group of a task is its application, counted from 1; each task is a
    /// process of its own.
    fn snapshot(&self, at_ns: u64) -> Snapshot {
        let online = self.scx.online();
        let place = |cpu| (cpu, self.domain_of[cpu], self.node_of[cpu]);
        let mut snapshot = Snapshot::new(at_ns, online.iter().map(place));
        for task in self.planned_tasks() {
            let sched = &task.scx.sched;
            let mask = snapshot.mask(sched.allowed());
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
        let program = |(application, asked): &(usize, Asked)| Program {
            id: *application as u32 + 1,
            processes: self.processes(*application),
            asks: asked.asks,
            cpus: Some(asked.cpus),
        };
        snapshot.classes.clone_from(&self.classes);
        snapshot.programs = self.programs.iter().map(program).collect();
        snapshot
    }
}
