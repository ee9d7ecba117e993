//! Parallel programs that asked to be scheduled as one: who they are, as processes come and go.

use crate::Error;
use crate::cpusets::{Cpusets, State};
use crate::daemon::RefusalKind;
use hearth_host::task::{Thread, name_of};
use hearth_policy::snapshot::{Asks, Program, Task};
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
    /// The name of the first one's program; empty if there is none.
    #[serde(default)]
    pub name: String,
    /// Its tasks that are scheduled.
    pub tasks: usize,
    /// The CPUs that the plan in force gives it; none if it has no part in the plan.
    pub cpus: Vec<usize>,
    /// The rows of time that it has.
    pub rows: Vec<usize>,
    /// Why others may run on its CPUs, too, if they may.
    #[serde(default)]
    pub shared: Option<String>,
}

/// Who asked, shared between those who ask and the thread that plans.
#[derive(Clone, Debug, Default)]
pub(crate) struct Programs(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    last_id: u32,
    entries: Vec<Entry>,
    /// Where sets are cgroups; none where they are a scheduler's.
    cpusets: Option<Cpusets>,
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
    shared: Option<String>,
}

/// Why a program cannot be scheduled as asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("there is no process {0}")]
    NoProcess(i32),
    #[error("there is no set or gang {0}")]
    NoProgram(u32),
    #[error("gangs are rows of time of Hearth's own scheduler, which needs sched_ext; here are only sets")]
    NoGangs,
    #[error(transparent)]
    Cpusets(#[from] Error),
}

impl Refused {
    /// Whose fault it is.
    pub(crate) fn kind(&self) -> RefusalKind {
        use hearth_host::Error as Host;
        match self {
            Self::NoGangs | Self::Cpusets(Error::Host(Host::Impossible(_))) => RefusalKind::Impossible,
            Self::NoProcess(_) | Self::Cpusets(Error::Host(Host::Process { .. })) => RefusalKind::Wrong,
            _ => RefusalKind::Failed,
        }
    }
}

impl Programs {
    /// Those that have sets as cgroups.
    pub(crate) fn in_cpusets(cpusets: Cpusets) -> Self {
        Self(Arc::new(Mutex::new(Book { cpusets: Some(cpusets), ..Book::default() })))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // A panic in between leaves a list of programs that is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A program of these processes and all that they begin; none yet, if it is to have some later.
    pub(crate) fn ask(&self, asks: Asks, cpus: Option<usize>, pids: &[i32]) -> Result<u32, Refused> {
        let processes = pids.iter().map(|&pid| started(pid)).collect::<Result<Vec<_>, _>>()?;
        let mut book = self.book();
        let id = book.last_id + 1;
        book.open(id, asks, &processes)?;
        book.last_id = id;
        book.entries.push(Entry {
            id,
            asks,
            cpus,
            processes: BTreeMap::new(),
            ends: !pids.is_empty(),
            tasks: 0,
            placed: BTreeSet::new(),
            rows: BTreeSet::new(),
            shared: None,
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
        if let Some(cpusets) = &mut book.cpusets {
            cpusets.bind(id, pids.iter().copied())?;
        }
        book.bind(id, processes);
        Ok(())
    }

    /// Its processes are scheduled as others are.
    pub(crate) fn forget(&self, id: u32) -> Result<(), Refused> {
        let mut book = self.book();
        let before = book.entries.len();
        book.retain(|entry| entry.id != id);
        if book.entries.len() < before { Ok(()) } else { Err(Refused::NoProgram(id)) }
    }

    /// Nothing is changed on the machine from now on.
    pub(crate) fn close(&self) {
        self.book().cpusets = None;
    }

    /// The CPUs that sets which are cgroups and everybody else share; none while there is no such set.
    pub(crate) fn shared_cpus(&self) -> Option<BTreeSet<usize>> {
        self.book().cpusets.as_ref()?.shared_cpus()
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

    /// Has the cgroups of sets have the CPUs that a plan gives them.
    pub(crate) fn place(&self, snapshot: &Snapshot, plan: &Plan) {
        self.note(snapshot, plan);
        let mut book = self.book();
        let Book { entries, cpusets: Some(cpusets), .. } = &mut *book else { return };
        let wanted: BTreeMap<u32, Vec<usize>> =
            entries.iter().map(|entry| (entry.id, entry.placed.iter().copied().collect())).collect();
        let rest = snapshot.cpus.iter().map(|cpu| cpu.number);
        let rest: Vec<usize> = rest.filter(|cpu| !wanted.values().flatten().any(|own| own == cpu)).collect();
        cpusets.lay_out(&wanted, &rest);
        for entry in entries {
            let (cpus, state) = cpusets.state(entry.id);
            entry.placed = cpus.into_iter().collect();
            entry.shared = match state {
                State::Own => None,
                State::New if entry.processes.is_empty() => None,
                State::New | State::Shared => Some("no CPU is left for it alone".to_owned()),
                State::Refused(why) => Some(why),
            };
        }
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
    /// Makes a set's cgroup, if sets are cgroups, and moves these processes there.
    fn open(&mut self, id: u32, asks: Asks, processes: &[Thread]) -> Result<(), Refused> {
        let Some(cpusets) = &mut self.cpusets else { return Ok(()) };
        if asks == Asks::Gang {
            return Err(Refused::NoGangs);
        }
        cpusets.open(id)?;
        cpusets.bind(id, processes.iter().map(|process| process.tid)).inspect_err(|_| cpusets.end(id))?;
        Ok(())
    }

    /// Forgets all others, with their cgroups.
    fn retain(&mut self, stays: impl Fn(&Entry) -> bool) {
        let Self { entries, cpusets, .. } = self;
        entries.retain(|entry| {
            let stays = stays(entry);
            if let (false, Some(cpusets)) = (stays, cpusets.as_mut()) {
                cpusets.end(entry.id);
            }
            stays
        });
    }

    fn bind(&mut self, id: u32, processes: Vec<Thread>) {
        for Thread { tid: pid, start } in processes {
            for entry in &mut self.entries {
                entry.processes.remove(&pid);
                if entry.id == id {
                    entry.processes.insert(pid, start);
                }
            }
        }
        self.retain(|entry| entry.id == id || !entry.has_ended());
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
        self.believe_cgroups();
        self.retain(|entry| !entry.has_ended());
    }

    /// Whether a task that a program has begun is to be of the program. Of a cgroup's processes only those are
    /// not yet in it that began before their parent was moved there; others have left it since.
    fn was_left_behind(&self, task: &Task, place: usize) -> bool {
        let id = self.entries[place].id;
        self.cpusets.as_ref().is_none_or(|cpusets| cpusets.left_behind(id, task.group))
    }

    /// Who is in a set's cgroup is of that set, and nobody else: another manager may have moved some.
    fn believe_cgroups(&mut self) {
        let Some(cpusets) = &self.cpusets else { return };
        for entry in &mut self.entries {
            let threads = cpusets.processes(entry.id).into_iter().filter_map(Thread::now);
            entry.processes = threads.map(|thread| (thread.tid, thread.start)).collect();
        }
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
            .filter_map(|task| Some((task, *owner.get(&task.parent)?)))
            .filter(|(task, place)| self.was_left_behind(task, *place))
            .map(|(task, place)| (task.process, place))
            .collect();
        let mut found = false;
        for (pid, place) in children {
            let id = self.entries[place].id;
            if self.cpusets.as_mut().is_some_and(|cpusets| cpusets.bind(id, [pid]).is_err()) {
                continue;
            }
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
            name: self.processes.keys().next().map(|&pid| name_of(pid)).unwrap_or_default(),
            tasks: self.tasks,
            cpus: self.placed.iter().copied().collect(),
            rows: self.rows.iter().copied().collect(),
            shared: self.shared.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
