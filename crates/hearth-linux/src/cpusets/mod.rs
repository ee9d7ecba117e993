//! Processor sets where the kernel's own scheduler stays on: a cgroup for each, with CPUs of its own.
//!
//! ```text
//! /sys/fs/cgroup/hearth-set-1           a partition: CPUs of set 1
//! /sys/fs/cgroup/hearth-set-1/from-0    its processes that were in one cgroup before,
//! /sys/fs/cgroup/hearth-set-1/from-1    and in another
//! ```
//!
//! What a process begins is in the same cgroup by itself; so all of it is known, and where it goes back to,
//! too. No cgroup of another manager is written.

mod road;

pub(crate) use road::CpusetRoad;

use crate::Error;
use hearth_host::cpuset::{self, Hierarchy, Partition};
use hearth_host::journal::{Change, Journal};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What names of Hearth's cgroups begin with.
const PREFIX: &str = "hearth-set-";

/// The kernel is asked again for what it has refused after so long: each time costs all CPUs a moment.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// All sets and their cgroups.
#[derive(Debug)]
pub(crate) struct Cpusets {
    journal: Arc<Mutex<Journal>>,
    /// Not looked for before there is a set.
    hierarchy: Option<Hierarchy>,
    /// Hearth has switched cpusets on, and will switch them off.
    has_switched: bool,
    sets: BTreeMap<u32, Set>,
    /// CPUs that other managers have given to cgroups of theirs, as of when a set came or went.
    named: BTreeSet<usize>,
}

#[derive(Debug)]
struct Set {
    folder: PathBuf,
    /// Where its processes were, each with the number of that cgroup: `from-0` is that of the first.
    origins: Vec<(PathBuf, u64)>,
    /// What was written last, and when.
    given: Vec<usize>,
    given_at: Instant,
    /// What the kernel says since.
    cpus: BTreeSet<usize>,
    state: State,
}

/// Whose a set's CPUs are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// It has none yet.
    #[default]
    New,
    /// Its own.
    Own,
    /// Others have them, too: no CPU is left for this set alone.
    Shared,
    /// Others may run there, too, for this reason.
    Refused(String),
}

impl Cpusets {
    pub(crate) fn new(journal: Arc<Mutex<Journal>>) -> Self {
        Self { journal, hierarchy: None, has_switched: false, sets: BTreeMap::new(), named: BTreeSet::new() }
    }

    /// Makes a set.
    pub(crate) fn open(&mut self, id: u32) -> Result<(), Error> {
        let hierarchy = match &self.hierarchy {
            Some(hierarchy) => hierarchy.clone(),
            None => Hierarchy::find()?,
        };
        let root = hierarchy.root().to_owned();
        self.hierarchy = Some(hierarchy);
        self.switch_on(&root)?;
        let folder = root.join(format!("{PREFIX}{id}"));
        self.make(&folder, &root)?;
        let set = Set {
            folder,
            origins: Vec::new(),
            given: Vec::new(),
            given_at: Instant::now(),
            cpus: BTreeSet::new(),
            state: State::default(),
        };
        self.sets.insert(id, set);
        self.look_at_others();
        Ok(())
    }

    /// Moves processes into a set.
    pub(crate) fn bind(&mut self, id: u32, pids: impl IntoIterator<Item = i32>) -> Result<(), Error> {
        for pid in pids {
            self.move_in(id, pid)?;
        }
        Ok(())
    }

    fn move_in(&mut self, id: u32, pid: i32) -> Result<(), Error> {
        let (Some(hierarchy), Some(set)) = (&self.hierarchy, self.sets.get(&id)) else { return Ok(()) };
        let now = hierarchy.of_process(pid)?;
        if now.starts_with(&set.folder) {
            return Ok(());
        }
        let origin = match self.sets.values().find_map(|other| other.origin_of(&now)) {
            Some(origin) => origin.to_owned(),
            None => match hierarchy.holds(&now) {
                Some(why) => return Err(cpuset::wrong(pid, why).into()),
                None => now,
            },
        };
        let folder = self.group_from(id, &origin)?;
        let stays = |error| cpuset::wrong(pid, format!("the kernel keeps it in its cgroup: {error}"));
        cpuset::enter(&folder, pid).map_err(|error| stays(error).into())
    }

    /// The cgroup within a set for processes that were there.
    fn group_from(&mut self, id: u32, origin: &Path) -> Result<PathBuf, Error> {
        let set = &self.sets[&id];
        let place = set.origins.iter().position(|(other, _)| other == origin);
        let folder = set.from(place.unwrap_or(set.origins.len()));
        if place.is_none() {
            let number = fs::metadata(origin).map_err(Error::file(origin))?.ino();
            self.make(&folder, origin)?;
            if let Some(set) = self.sets.get_mut(&id) {
                set.origins.push((origin.to_owned(), number));
            }
        }
        Ok(folder)
    }

    /// Whether a process that one of the set has begun was left behind, in the cgroup of this number.
    pub(crate) fn left_behind(&self, id: u32, group: u64) -> bool {
        self.sets.get(&id).is_some_and(|set| set.origins.iter().any(|(_, number)| *number == group))
    }

    /// The processes of a set.
    pub(crate) fn processes(&self, id: u32) -> Vec<i32> {
        let set = self.sets.get(&id).into_iter();
        set.flat_map(Set::groups).flat_map(|(folder, _)| cpuset::processes(&folder)).collect()
    }

    /// Ends a set: its processes go back to where they were.
    pub(crate) fn end(&mut self, id: u32) {
        let Some(set) = self.sets.remove(&id) else { return };
        for (folder, back) in set.groups().into_iter().rev() {
            // What cannot be removed is in the journal, and tried again at the end.
            cpuset::remove_group(&folder, &back);
        }
        self.look_at_others();
    }

    /// The CPUs that sets and everybody else share; none while there is no set.
    pub(crate) fn shared_cpus(&self) -> Option<BTreeSet<usize>> {
        let cpus = self.all_cpus().filter(|_| !self.sets.is_empty())?;
        Some(&cpus - &self.named)
    }

    /// CPUs that are online, and no other manager's partition.
    fn all_cpus(&self) -> Option<BTreeSet<usize>> {
        let mut cpus = self.hierarchy.as_ref()?.free_cpus().ok()?;
        let own = self.sets.values().filter(|set| set.state == State::Own);
        cpus.extend(own.flat_map(|set| &set.cpus));
        Some(cpus)
    }

    /// Gives each set these CPUs for itself; one that has none shares `rest` with everybody else.
    pub(crate) fn lay_out(&mut self, wanted: &BTreeMap<u32, Vec<usize>>, rest: &[usize]) {
        self.sets.values_mut().for_each(Set::look);
        let changed: Vec<(u32, &[usize], bool)> = self
            .sets
            .iter()
            .filter_map(|(id, set)| {
                let own = wanted.get(id).filter(|cpus| !cpus.is_empty());
                let cpus = own.map_or(rest, Vec::as_slice);
                set.differs(cpus, own.is_some()).then_some((*id, cpus, own.is_some()))
            })
            .collect();
        if changed.is_empty() {
            return;
        }
        // Another manager may have switched them off.
        if let Some(root) = self.hierarchy.as_ref().map(|hierarchy| hierarchy.root().to_owned()) {
            let _ = self.switch_on(&root);
        }
        // None is a partition while CPUs change hands: so none asks for a CPU that another still has.
        let folders = changed.iter().map(|(id, ..)| &self.sets[id].folder);
        let shared: Vec<io::Result<()>> = folders.map(|folder| cpuset::share(folder)).collect();
        for ((id, cpus, own), shared) in changed.into_iter().zip(shared) {
            if let Some(set) = self.sets.get_mut(&id) {
                set.take(shared, cpus, own);
            }
        }
    }

    /// The CPUs of a set, and whose they are, as the kernel says.
    pub(crate) fn state(&self, id: u32) -> (Vec<usize>, State) {
        let state = |set: &Set| (set.cpus.iter().copied().collect(), set.state.clone());
        self.sets.get(&id).map(state).unwrap_or_default()
    }

    fn switch_on(&mut self, root: &Path) -> Result<(), Error> {
        if cpuset::is_on(root) {
            return Ok(());
        }
        if self.has_switched {
            return cpuset::switch_on(root).map_err(|errno| Error::file(root)(errno.into()));
        }
        self.change(Change::Cpusets { root: root.to_owned() }, root)?;
        self.has_switched = true;
        Ok(())
    }

    fn make(&self, folder: &Path, back: &Path) -> Result<(), Error> {
        // One that is there already is not ours to remove.
        if folder.exists() {
            return Err(Error::file(folder)(io::ErrorKind::AlreadyExists.into()));
        }
        self.change(Change::NewCgroup { folder: folder.to_owned(), back: back.to_owned() }, folder)
    }

    fn change(&self, change: Change, path: &Path) -> Result<(), Error> {
        // A journal is whole between two changes, whoever panicked.
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = journal.make(vec![change])?;
        refused.into_iter().next().map_or(Ok(()), |(_, errno)| Err(Error::file(path)(errno.into())))
    }

    fn look_at_others(&mut self) {
        let (Some(hierarchy), Some(cpus)) = (&self.hierarchy, self.all_cpus()) else { return };
        let is_ours = |folder: &Path| {
            let name = folder.strip_prefix(hierarchy.root()).unwrap_or(folder);
            name.to_string_lossy().starts_with(PREFIX)
        };
        self.named = hierarchy.named_by_others(&cpus, is_ours);
    }
}

impl Set {
    fn from(&self, place: usize) -> PathBuf {
        self.folder.join(format!("from-{place}"))
    }

    /// Its cgroups, and where the processes of each go back to.
    fn groups(&self) -> Vec<(PathBuf, PathBuf)> {
        let root = self.folder.parent().unwrap_or(&self.folder).to_owned();
        let below =
            self.origins.iter().enumerate().map(|(place, (origin, _))| (self.from(place), origin.clone()));
        std::iter::once((self.folder.clone(), root)).chain(below).collect()
    }

    /// Where processes in this cgroup were before, if it is one of the set.
    fn origin_of(&self, folder: &Path) -> Option<&Path> {
        let place = (0..self.origins.len()).find(|&place| folder.starts_with(self.from(place)))?;
        Some(&self.origins[place].0)
    }

    fn differs(&self, cpus: &[usize], own: bool) -> bool {
        match self.state {
            // Who has none, and never had, shares without a word.
            State::New => own,
            State::Own => !own || self.given != cpus,
            State::Shared if !own => self.given != cpus,
            State::Shared | State::Refused(_) => self.given != cpus || self.given_at.elapsed() > ASK_AGAIN,
        }
    }

    fn take(&mut self, shared: io::Result<()>, cpus: &[usize], own: bool) {
        (self.given, self.given_at) = (cpus.to_vec(), Instant::now());
        self.state = match shared.and_then(|()| cpuset::give(&self.folder, cpus, own)) {
            Ok(()) => State::Shared,
            Err(error) => State::Refused(format!("the kernel refuses: {error}")),
        };
        self.look();
    }

    /// Reads back what the kernel made of it.
    fn look(&mut self) {
        if self.state == State::New {
            return;
        }
        // Where another manager has switched cpusets off there is nothing to look at.
        let Ok((cpus, partition)) = cpuset::look(&self.folder) else {
            self.state = State::New;
            return self.cpus.clear();
        };
        self.cpus = cpus;
        match (partition, &self.state) {
            (Partition::Own, _) => self.state = State::Own,
            (Partition::Invalid(why), _) => self.state = State::Refused(why),
            // The refusal of a write says more.
            (Partition::Shared, State::Refused(_)) => {}
            (Partition::Shared, _) => self.state = State::Shared,
        }
    }
}
