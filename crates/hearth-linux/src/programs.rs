//! Parallel programs that asked to be scheduled as one: who they are, as processes come and go.

use hearth_host::task::Thread;
use hearth_policy::snapshot::{Asks, Program};
use hearth_policy::{Plan, Snapshot};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Generations of processes that are found in one step; the rest is in the next.
const GENERATIONS: usize = 8;

/// What a program asks for, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramStatus {
    /// Its number among all that ever asked.
    pub id: u32,
    /// Whether it asked to be a gang; if not, for a set.
    pub is_gang: bool,
    /// The most CPUs that it asked for; as many as there are, if none.
    pub most_cpus: Option<usize>,
    /// Its processes.
    pub processes: Vec<i32>,
    /// Its tasks that are scheduled.
    pub tasks: usize,
    /// The CPUs that the plan in force gives it; none if it has no part in the plan.
    pub cpus: Vec<usize>,
    /// The rows of time that it has.
    pub rows: Vec<usize>,
}

/// Who asked, shared between those who ask and the thread that plans.
#[derive(Clone, Debug, Default)]
pub(crate) struct Programs(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    last_id: u32,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    id: u32,
    asks: Asks,
    cpus: Option<usize>,
    /// When each process began tells it from a later one of the same number.
    processes: BTreeMap<i32, u64>,
    /// It is forgotten with its last process.
    ends: bool,
    tasks: usize,
    placed: BTreeSet<usize>,
    rows: BTreeSet<usize>,
}

/// Why a program cannot be scheduled as asked.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("there is no process {0}")]
    NoProcess(i32),
    #[error("there is no set or gang {0}")]
    NoProgram(u32),
}

impl Programs {
    fn book(&self) -> MutexGuard<'_, Book> {
        // A panic in between leaves a list of programs that is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A program of these processes and all that they begin; none yet, if it is to have some later.
    pub(crate) fn ask(&self, asks: Asks, cpus: Option<usize>, pids: &[i32]) -> Result<u32, Refused> {
        let processes = pids.iter().map(|&pid| started(pid)).collect::<Result<Vec<_>, _>>()?;
        let mut book = self.book();
        book.last_id += 1;
        let id = book.last_id;
        book.entries.push(Entry {
            id,
            asks,
            cpus,
            processes: BTreeMap::new(),
            ends: !pids.is_empty(),
            tasks: 0,
            placed: BTreeSet::new(),
            rows: BTreeSet::new(),
        });
        book.bind(id, processes);
        Ok(id)
    }

    /// Processes become those of a program, and of no other.
    pub(crate) fn bind(&self, id: u32, pids: &[i32]) -> Result<(), Refused> {
        let processes = pids.iter().map(|&pid| started(pid)).collect::<Result<Vec<_>, _>>()?;
        let mut book = self.book();
        if !book.entries.iter().any(|entry| entry.id == id) {
            return Err(Refused::NoProgram(id));
        }
        book.bind(id, processes);
        Ok(())
    }

    /// Its processes are scheduled as others are.
    pub(crate) fn forget(&self, id: u32) -> Result<(), Refused> {
        let mut book = self.book();
        let before = book.entries.len();
        book.entries.retain(|entry| entry.id != id);
        if book.entries.len() < before { Ok(()) } else { Err(Refused::NoProgram(id)) }
    }

    /// All of them.
    pub(crate) fn list(&self) -> Vec<ProgramStatus> {
        self.book().entries.iter().map(Entry::status).collect()
    }

    /// Adds the programs to a snapshot: with processes that theirs have begun, without those that are gone.
    pub(crate) fn follow(&self, snapshot: &mut Snapshot) {
        let mut book = self.book();
        if !book.entries.is_empty() {
            book.follow(snapshot);
        }
        snapshot.programs = book.entries.iter().map(Entry::program).collect();
    }

    /// Notes what a plan gives each program.
    pub(crate) fn note(&self, snapshot: &Snapshot, plan: &Plan) {
        for entry in &mut self.book().entries {
            let own = snapshot.tasks.iter().filter(|task| entry.processes.contains_key(&task.process));
            entry.tasks = own.clone().count();
            let targets: Vec<_> = own.filter_map(|task| plan.target(task.tid, task.group)).collect();
            entry.rows = targets.iter().filter_map(|target| target.row).collect();
            entry.placed = targets
                .iter()
                .flat_map(|target| match target.part {
                    Some(part) if target.home.is_none() => plan.parts.get(part).cloned().unwrap_or_default(),
                    _ => target.home.into_iter().collect(),
                })
                .collect();
        }
    }
}

fn started(pid: i32) -> Result<Thread, Refused> {
    Thread::now(pid).ok_or(Refused::NoProcess(pid))
}

impl Book {
    fn bind(&mut self, id: u32, processes: Vec<Thread>) {
        for Thread { tid: pid, start } in processes {
            for entry in &mut self.entries {
                entry.processes.remove(&pid);
                if entry.id == id {
                    entry.processes.insert(pid, start);
                }
            }
        }
        self.entries.retain(|entry| entry.id == id || !entry.has_ended());
    }

    fn follow(&mut self, snapshot: &Snapshot) {
        let there: BTreeSet<i32> = snapshot.tasks.iter().map(|task| task.process).collect();
        for entry in &mut self.entries {
            // One whose threads are all of other classes is in no snapshot.
            entry
                .processes
                .retain(|&pid, &mut start| there.contains(&pid) || Thread { tid: pid, start }.is_there());
        }
        for _ in 0..GENERATIONS {
            if !self.adopt(snapshot) {
                break;
            }
        }
        self.entries.retain(|entry| !entry.has_ended());
    }

    /// Takes up children of the programs' processes; whether there were any.
    fn adopt(&mut self, snapshot: &Snapshot) -> bool {
        let owner: BTreeMap<i32, usize> = self
            .entries
            .iter()
            .enumerate()
            .flat_map(|(place, entry)| entry.processes.keys().map(move |pid| (*pid, place)))
            .collect();
        let children: BTreeMap<i32, usize> = snapshot
            .tasks
            .iter()
            .filter(|task| !owner.contains_key(&task.process))
            .filter_map(|task| Some((task.process, *owner.get(&task.parent)?)))
            .collect();
        let mut found = false;
        for (pid, place) in children {
            if let Some(thread) = Thread::now(pid) {
                self.entries[place].processes.insert(pid, thread.start);
                found = true;
            }
        }
        found
    }
}

impl Entry {
    fn has_ended(&self) -> bool {
        self.ends && self.processes.is_empty()
    }

    fn program(&self) -> Program {
        let processes = self.processes.keys().copied().collect();
        Program { id: self.id, processes, asks: self.asks, cpus: self.cpus }
    }

    fn status(&self) -> ProgramStatus {
        ProgramStatus {
            id: self.id,
            is_gang: self.asks == Asks::Gang,
            most_cpus: self.cpus,
            processes: self.processes.keys().copied().collect(),
            tasks: self.tasks,
            cpus: self.placed.iter().copied().collect(),
            rows: self.rows.iter().copied().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_policy::Target;
    use hearth_policy::snapshot::Task;
    use std::process::Command;

    fn own() -> i32 {
        std::process::id() as i32
    }

    fn snapshot(tasks: &[(i32, i32)]) -> Snapshot {
        let mut snapshot = Snapshot::new(0, [(0, 0, 0), (1, 0, 0)]);
        for &(process, parent) in tasks {
            snapshot.add(Task { tid: process, process, parent, ..Task::default() });
        }
        snapshot
    }

    #[test]
    fn children_belong_to_the_program_and_it_ends_with_its_last_process() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id() as i32;
        let programs = Programs::default();
        let id = programs.ask(Asks::Set, None, &[own()]).unwrap();
        let mut both = snapshot(&[(pid, own()), (own(), 1), (1, 0)]);
        programs.follow(&mut both);
        assert_eq!(both.programs[0].processes, [own(), pid].into());
        // The child has a program of its own: the first one keeps the parent alone.
        let other = programs.ask(Asks::Gang, Some(1), &[pid]).unwrap();
        programs.follow(&mut both);
        let of = |snapshot: &Snapshot, place: usize| snapshot.programs[place].processes.clone();
        assert_eq!((of(&both, 0), of(&both, 1)), ([own()].into(), [pid].into()));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut one = snapshot(&[(own(), 1)]);
        programs.follow(&mut one);
        assert_eq!(programs.list().iter().map(|program| program.id).collect::<Vec<_>>(), [id]);
        assert_eq!(programs.forget(other), Err(Refused::NoProgram(other)));
        assert_eq!(programs.forget(id), Ok(()));
    }

    #[test]
    fn a_set_may_be_made_before_its_processes() {
        let programs = Programs::default();
        let id = programs.ask(Asks::Set, Some(1), &[]).unwrap();
        let mut empty = snapshot(&[(own(), 1)]);
        programs.follow(&mut empty);
        assert!(empty.programs[0].processes.is_empty());
        assert_eq!(programs.bind(id, &[i32::MAX]), Err(Refused::NoProcess(i32::MAX)));
        assert_eq!(programs.bind(id + 1, &[own()]), Err(Refused::NoProgram(id + 1)));
        programs.bind(id, &[own()]).unwrap();
        let mut one = snapshot(&[(own(), 1)]);
        programs.follow(&mut one);
        let plan = Plan {
            parts: vec![vec![1], vec![0]],
            tasks: [(own(), Target { part: Some(0), ..Target::default() })].into(),
            ..Plan::default()
        };
        programs.note(&one, &plan);
        let status = &programs.list()[0];
        assert_eq!((status.tasks, &status.cpus, &status.rows), (1, &vec![1], &Vec::new()));
    }
}
