//! Gang scheduling: the tasks of a parallel program run at the same time (Ousterhout 1982; Chandra et al.,
//! section 5.2).
//!
//! ```text
//! time  CPU 0 1 2 3 4 5 6 7
//!  row 0   |--- ocean ----|        a gang has CPUs that are neighbours, in one row
//!  row 1   |water| |panel-|        the machine's cache domains are cut where it must be
//!  row 2    . . . . . . . .        everybody else's, if there is anybody
//! ```
//!
//! Members are the program's tasks that run: one that only waits for others, as parents do for their
//! children, has no place. A gang stays where it is until it ends, or its number of members changes. Rows
//! that are empty go; every ten seconds all gangs are placed anew, the widest first, if that takes fewer
//! rows. Gangs that fit beside each other in one row need not take turns. Where other programs have sets,
//! gangs have the CPUs of the part to which the plan keeps them.

use super::Planner;
use super::activity::Activity;
use super::matrix::{Matrix, Stretch};
use super::programs::Programs;
use crate::plan::{MAX_TARGETS, Plan, Rows, Target};
use crate::snapshot::{Asks, Snapshot};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How long a row is, if nothing else is said: as in the paper.
pub const ROW_NS: u64 = 100_000_000;

/// From one compaction to the next: as in the paper.
const COMPACTION_NS: u64 = 10_000_000_000;

/// Others have a row for as long as one of them waited so many steps ago at most.
const STEPS_TO_FORGET: u32 = 10;

/// See the module.
#[derive(Debug)]
pub struct Gangs {
    row_ns: u64,
    /// The machine's CPUs in the order of columns, with their domains.
    columns: Vec<(usize, usize)>,
    matrix: Matrix,
    gangs: BTreeMap<u32, Gang>,
    activity: Activity,
    compacted_ns: u64,
    /// Steps since a task that is in no gang waited.
    others_waited: u32,
}

#[derive(Debug)]
struct Gang {
    /// In the order of columns, row after row.
    tids: Vec<i32>,
    places: Vec<Stretch>,
}

impl Default for Gangs {
    fn default() -> Self {
        Self::of_rows(ROW_NS)
    }
}

impl Planner for Gangs {
    fn name(&self) -> &'static str {
        super::GANGS
    }

    fn plan(&mut self, snapshot: &Snapshot, plan: &mut Plan) {
        let part = part_of_gangs(snapshot, plan);
        self.follow_machine(snapshot, part.and_then(|part| plan.parts.get(part)));
        let mut programs = Programs::of(snapshot, Asks::Gang);
        self.activity.follow(snapshot, &mut programs.tids);
        self.others_waited = if programs.others_wait { 0 } else { self.others_waited.saturating_add(1) };
        if !self.columns.is_empty() {
            self.follow_programs(programs.tids);
        }
        self.drop_empty_rows();
        if snapshot.at_ns.saturating_sub(self.compacted_ns) >= COMPACTION_NS {
            self.compacted_ns = snapshot.at_ns;
            self.compact();
        }
        self.say(part, plan);
    }
}

impl Gangs {
    /// With rows that are so long, in nanoseconds.
    pub fn of_rows(row_ns: u64) -> Self {
        Self {
            row_ns,
            columns: Vec::new(),
            matrix: Matrix::default(),
            gangs: BTreeMap::new(),
            activity: Activity::default(),
            compacted_ns: 0,
            others_waited: STEPS_TO_FORGET,
        }
    }

    /// Neighbours in the matrix are neighbours in the machine. Where that changes, all begins anew.
    fn follow_machine(&mut self, snapshot: &Snapshot, part: Option<&Vec<usize>>) {
        let mut cpus = snapshot.cpus.clone();
        cpus.retain(|cpu| part.is_none_or(|part| part.contains(&cpu.number)));
        cpus.sort_by_key(|cpu| (cpu.node, cpu.domain, cpu.number));
        let columns: Vec<(usize, usize)> = cpus.iter().map(|cpu| (cpu.number, cpu.domain)).collect();
        if columns != self.columns {
            self.columns = columns;
            self.matrix = self.empty();
            self.gangs.clear();
        }
    }

    fn empty(&self) -> Matrix {
        Matrix::new(&self.columns.iter().map(|(_, domain)| *domain).collect::<Vec<_>>())
    }

    fn follow_programs(&mut self, programs: BTreeMap<u32, Vec<i32>>) {
        let matrix = &mut self.matrix;
        self.gangs.retain(|id, gang| {
            let stays = programs.get(id).is_some_and(|tids| tids.len() == gang.tids.len());
            if !stays {
                matrix.remove(&gang.places);
            }
            stays
        });
        for (id, tids) in programs {
            match self.gangs.get_mut(&id) {
                // Others of the same number: each takes the place of one that is gone.
                Some(gang) => gang.tids = tids,
                None => {
                    let places = self.matrix.place(tids.len());
                    self.gangs.insert(id, Gang { tids, places });
                }
            }
        }
    }

    fn drop_empty_rows(&mut self) {
        for row in (0..self.matrix.rows()).rev() {
            if !self.matrix.is_empty(row) {
                continue;
            }
            self.matrix.drop_row(row);
            let places = self.gangs.values_mut().flat_map(|gang| &mut gang.places);
            places.filter(|place| place.row > row).for_each(|place| place.row -= 1);
        }
    }

    /// Places all anew, the widest first, if that takes fewer rows.
    fn compact(&mut self) {
        let mut matrix = self.empty();
        let mut widest: Vec<(u32, usize)> =
            self.gangs.iter().map(|(id, gang)| (*id, gang.tids.len())).collect();
        widest.sort_by_key(|(id, width)| (Reverse(*width), *id));
        let places: Vec<(u32, Vec<Stretch>)> =
            widest.into_iter().map(|(id, width)| (id, matrix.place(width))).collect();
        if matrix.rows() >= self.matrix.rows() {
            return;
        }
        self.matrix = matrix;
        for (id, places) in places {
            if let Some(gang) = self.gangs.get_mut(&id) {
                gang.places = places;
            }
        }
    }

    fn say(&self, part: Option<usize>, plan: &mut Plan) {
        if self.matrix.rows() == 0 {
            return;
        }
        let have_others_a_row = self.others_waited < STEPS_TO_FORGET;
        let count = self.matrix.rows() + usize::from(have_others_a_row);
        plan.rows = Rows { count, length_ns: self.row_ns };
        for gang in self.gangs.values() {
            // Those that a plan has no room for are scheduled as others are.
            if plan.tasks.len() + gang.tids.len() > MAX_TARGETS {
                continue;
            }
            let cells =
                gang.places.iter().flat_map(|place| (0..place.width).map(|i| (place.row, place.first + i)));
            for (tid, (row, column)) in gang.tids.iter().zip(cells) {
                let target = Target { row: Some(row), part, ..Target::at_home(self.columns[column].0) };
                plan.tasks.insert(*tid, target);
            }
        }
    }
}

/// The part to which earlier planners keep the gangs; that of the first one counts for all.
fn part_of_gangs(snapshot: &Snapshot, plan: &Plan) -> Option<usize> {
    let first = snapshot.programs.iter().find(|program| program.asks == Asks::Gang)?;
    let task = snapshot.tasks.iter().find(|task| first.processes.contains(&task.process))?;
    plan.target(task.tid, task.group)?.part
}

#[cfg(test)]
mod tests {
    use super::super::activity::STEPS_TO_LEAVE;
    use super::*;
    use crate::snapshot::{Program, State, Task};
    use proptest::prelude::*;

    /// 8 CPUs in two domains; gangs as their process and width.
    fn snapshot(at_s: u64, gangs: &[(i32, usize)], others: usize) -> Snapshot {
        let mut snapshot = Snapshot::new(at_s * 1_000_000_000, (0..8).map(|cpu| (cpu, cpu / 4, 0)));
        let mask = snapshot.mask((0..8).collect());
        for &(process, width) in gangs {
            let processes = [process].into();
            snapshot.programs.push(Program { id: process as u32, processes, asks: Asks::Gang, cpus: None });
            for tid in (0..width as i32).map(|thread| process * 100 + thread) {
                snapshot.add(Task { tid, process, mask, state: State::Running, ..Task::default() });
            }
        }
        for other in 0..others as i32 {
            snapshot.add(Task {
                tid: 9000 + other,
                process: 9000,
                mask,
                state: State::Waiting,
                ..Task::default()
            });
        }
        snapshot
    }

    fn plan(gangs: &mut Gangs, snapshot: &Snapshot) -> Plan {
        let mut plan = Plan::default();
        // Members are seen twice before they count.
        gangs.activity.follow(snapshot, &mut Programs::of(snapshot, Asks::Gang).tids);
        gangs.plan(snapshot, &mut plan);
        assert_eq!(plan.check(snapshot), Ok(()));
        plan
    }

    /// The row and the CPUs of a gang.
    fn place(plan: &Plan, process: i32) -> (usize, Vec<usize>) {
        let own = plan.tasks.range(process * 100..(process + 1) * 100).map(|(_, target)| *target);
        let places: Vec<(usize, usize)> =
            own.map(|target| (target.row.unwrap(), target.home.unwrap())).collect();
        assert!(places.iter().all(|(row, _)| *row == places[0].0));
        (places[0].0, places.into_iter().map(|(_, cpu)| cpu).collect())
    }

    /// Steps until others that do not wait have no row any more.
    fn settled() -> Gangs {
        Gangs { others_waited: STEPS_TO_FORGET, ..Gangs::default() }
    }

    #[test]
    fn gangs_that_fit_beside_each_other_share_a_row() {
        let plan = plan(&mut settled(), &snapshot(0, &[(1, 4), (2, 4), (3, 8)], 0));
        assert_eq!(place(&plan, 1), (0, vec![0, 1, 2, 3]));
        assert_eq!(place(&plan, 2), (0, vec![4, 5, 6, 7]));
        assert_eq!(place(&plan, 3).0, 1);
        assert_eq!(plan.rows, Rows { count: 2, length_ns: ROW_NS });
    }

    #[test]
    fn others_have_a_row_while_they_wait_and_a_second_longer() {
        let mut gangs = settled();
        let with = |gangs: &mut Gangs, others| plan(gangs, &snapshot(0, &[(1, 8)], others)).rows.count;
        assert_eq!(with(&mut gangs, 0), 1);
        assert_eq!(with(&mut gangs, 3), 2);
        let counts: Vec<usize> = (0..STEPS_TO_FORGET).map(|_| with(&mut gangs, 0)).collect();
        assert_eq!((counts[0], counts[8], counts[9]), (2, 2, 1));
        assert_eq!(plan(&mut gangs, &snapshot(0, &[], 3)), Plan::default(), "without a gang there is no row");
    }

    #[test]
    fn a_gang_stays_where_it_is_and_gives_its_place_up_when_it_ends() {
        let mut gangs = settled();
        plan(&mut gangs, &snapshot(0, &[(1, 8), (2, 4), (3, 4), (4, 8)], 0));
        let later = plan(&mut gangs, &snapshot(1, &[(2, 4), (4, 8)], 0));
        assert_eq!(place(&later, 2), (0, vec![0, 1, 2, 3]));
        assert_eq!((place(&later, 4).0, later.rows.count), (1, 2));
    }

    #[test]
    fn rows_are_fewer_after_a_compaction() {
        let mut gangs = settled();
        plan(&mut gangs, &snapshot(0, &[(1, 5), (2, 3), (3, 5), (4, 3)], 0));
        let holes = [(1, 5), (4, 3)];
        assert_eq!(plan(&mut gangs, &snapshot(9, &holes, 0)).rows.count, 2);
        assert_eq!(plan(&mut gangs, &snapshot(10, &holes, 0)).rows.count, 1);
    }

    #[test]
    fn a_task_that_only_waits_for_others_has_no_place() {
        let mut gangs = settled();
        let mut snapshot = snapshot(0, &[(1, 9)], 0);
        snapshot.tasks[0].state = State::Asleep;
        assert_eq!(plan(&mut gangs, &snapshot).tasks.len(), 8);
        assert_eq!(plan(&mut gangs, &snapshot).rows.count, 1);
        // It runs; another sleeps.
        snapshot.tasks[0].state = State::Running;
        assert_eq!(plan(&mut gangs, &snapshot).rows.count, 2);
        snapshot.tasks[4].state = State::Asleep;
        assert_eq!(plan(&mut gangs, &snapshot).tasks.len(), 9, "it may be back soon");
        let last = (0..STEPS_TO_LEAVE).map(|_| plan(&mut gangs, &snapshot)).last().unwrap();
        assert_eq!((last.tasks.len(), last.rows.count), (8, 1));
    }

    #[test]
    fn gangs_keep_out_of_the_sets_of_others() {
        let mut snapshot = snapshot(0, &[(1, 4), (2, 4)], 0);
        snapshot.programs[0].asks = Asks::Set;
        let mut plan = Plan::default();
        super::super::Sets::default().plan(&snapshot, &mut plan);
        assert!(plan.parts.is_empty(), "nobody else runs");
        snapshot.tasks.iter_mut().for_each(|task| task.state = State::Running);
        let mut sets = super::super::Sets::default();
        let mut gangs = settled();
        let mut both = |snapshot: &Snapshot| {
            let mut plan = Plan::default();
            sets.plan(snapshot, &mut plan);
            gangs.plan(snapshot, &mut plan);
            assert_eq!(plan.check(snapshot), Ok(()));
            plan
        };
        let last = (0..40).map(|_| both(&snapshot)).last().unwrap();
        assert_eq!(place(&last, 2), (0, last.parts[1].clone()));
        assert!(last.tasks.range(100..200).all(|(_, target)| target.part == Some(0)));
    }

    proptest! {
        #[test]
        fn each_task_has_a_place_of_its_own(
            steps in prop::collection::vec(prop::collection::btree_map(1..12i32, 1..20usize, 0..8), 1..20),
        ) {
            let mut gangs = Gangs::default();
            for (step, asked) in steps.into_iter().enumerate() {
                let asked: Vec<(i32, usize)> = asked.into_iter().collect();
                let plan = plan(&mut gangs, &snapshot(step as u64 * 3, &asked, step % 2));
                let tasks: usize = asked.iter().map(|(_, width)| width).sum();
                let places: std::collections::BTreeSet<_> =
                    plan.tasks.values().map(|target| (target.row, target.home)).collect();
                prop_assert_eq!((plan.tasks.len(), places.len()), (tasks, tasks));
                // No row is empty but that of the others.
                let rows: std::collections::BTreeSet<_> = places.iter().map(|(row, _)| *row).collect();
                prop_assert!(rows.len() + 1 >= plan.rows.count);
            }
        }
    }
}
