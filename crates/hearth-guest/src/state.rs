//! Booted guests, kept: a kernel boots once for a kind of guest, and scripts begin where it had come to.
//!
//! A kind is a kernel, a QEMU, the guest's own files and all that QEMU is told of the machine. Its first guest has no
//! script: when all is mounted, its init pauses the machine (`programs/load.c`), and QEMU writes the machine into a
//! file. Guests with scripts begin with that file, and get script and files from the host. So do those that prepare
//! something that others share: they pause once more, and are written into a file of their own.
//!
//! They do the same each time, as guests that boot do, but for one thing: what QEMU does after it has read the file,
//! it does beside the guest's CPUs, and one of its threads (that which frees memory, `call_rcu`) makes a CPU's turn
//! end when it has something to do. So CPUs do not go on before that thread has come to rest.

use std::collections::{BTreeMap, hash_map::DefaultHasher};
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;

use crate::boot::Boot;
use crate::monitor::{LOOK, Monitor, wrong};
use crate::{GuestError, Output, install};

/// So many states are kept, those that were used last; one has some 130 MB, and what it prepares.
const KEPT: usize = 36;
/// The thread rests if it has waited for something to do for so long. While it has, it looks every 10 ms.
const REST: Duration = Duration::from_millis(150);
/// What it may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(60);
/// The system call in which it waits: `futex`.
const FUTEX: &str = "202 ";

/// What makes a guest what it is, as a number.
#[derive(Clone)]
pub(crate) struct Key(DefaultHasher);

impl Key {
    /// Of a guest of this QEMU, which is told so.
    pub(crate) fn of(told: &str) -> Result<Self, GuestError> {
        let mut hasher = DefaultHasher::new();
        install::qemu_version()?.hash(&mut hasher);
        Ok(Self(hasher).with(told))
    }

    pub(crate) fn with(mut self, text: &str) -> Self {
        text.hash(&mut self.0);
        self
    }

    /// With the contents of files.
    pub(crate) fn with_files<'a>(
        mut self,
        files: impl IntoIterator<Item = &'a Path>,
    ) -> Result<Self, GuestError> {
        for file in files {
            fs::read(file).map_err(GuestError::file(file))?.hash(&mut self.0);
        }
        Ok(self)
    }

    /// With files of the host, and their places in the guest.
    pub(crate) fn with_placed(mut self, files: &BTreeMap<PathBuf, PathBuf>) -> Result<Self, GuestError> {
        for (guest, host) in files {
            guest.hash(&mut self.0);
            self = self.with_files([host.as_path()])?;
        }
        Ok(self)
    }

    pub(crate) fn number(&self) -> u64 {
        self.0.finish()
    }
}

/// Why there is no state.
pub(crate) enum Failure {
    /// The guest came to its end before it paused, and said this.
    Ended(Output),
    Error(GuestError),
}

impl From<GuestError> for Failure {
    fn from(error: GuestError) -> Self {
        Self::Error(error)
    }
}

/// The state of a kind of guest.
pub(crate) struct State {
    file: PathBuf,
}

impl State {
    /// The state of guests of a key; made if there is none. `boot` makes the command of the guest that comes to it, whose
    /// plugin says in a file where its clock has come to; `before` is the state that it begins with, if it does not boot.
    pub(crate) fn of(
        key: Key,
        limit: Duration,
        before: Option<&Self>,
        boot: impl FnOnce(&Boot, &Path) -> Result<Command, GuestError>,
    ) -> Result<Self, Failure> {
        let folder = install::states();
        fs::create_dir_all(&folder).map_err(GuestError::file(&folder))?;
        let file = folder.join(format!("{:016x}", key.number()));
        let lock = file.with_extension("lock");
        let lock = File::create(&lock).map_err(GuestError::file(&lock))?;
        lock.lock().map_err(GuestError::file(&file))?;
        if file.is_file() {
            // So that others go before it when there are too many.
            let used =
                File::options().append(true).open(&file).and_then(|of| of.set_modified(SystemTime::now()));
            used.map_err(GuestError::file(&file))?;
        } else {
            make(&file, limit, before, boot)?;
            drop_oldest(&folder);
        }
        Ok(Self { file })
    }

    /// What its guest had printed.
    pub(crate) fn said(&self) -> Result<String, GuestError> {
        let file = said(&self.file);
        fs::read_to_string(&file).map_err(GuestError::file(&file))
    }

    /// What says where the guest's clock had come to, if a plugin moves it.
    pub(crate) fn clock(&self) -> PathBuf {
        clock(&self.file)
    }

    /// What QEMU is told for a guest that begins with this state.
    pub(crate) fn tell(&self, qemu: &mut Command) {
        qemu.arg("-S").arg("-incoming").arg(format!("file:{}", self.file.display()));
    }
}

/// What QEMU is told in either case: how it listens, and how a guest pauses itself.
pub(crate) fn tell(qemu: &mut Command, boot: &Boot, given: &Path) {
    qemu.arg("-qmp").arg(format!("unix:{},server=on,wait=off", boot.monitor().display()));
    qemu.arg("-pidfile").arg(boot.pid_file()).args(["-name", "guest,debug-threads=on"]);
    qemu.args(["-device", "pvpanic", "-action", "panic=pause"]);
    qemu.args(["-global", "migration.store-global-state=off"]);
    qemu.arg("-fw_cfg").arg(format!("name=opt/hearth,file={}", given.display()));
}

/// Has a guest go on that began with a state.
pub(crate) fn go_on(qemu: &mut Child, boot: &Boot) -> Result<(), GuestError> {
    let mut monitor = Monitor::connect(&boot.monitor(), qemu)?;
    monitor.wait_while("query-status", "status", &["inmigrate"])?;
    rest(&boot.pid_file())?;
    monitor.execute("cont", json!({}))?;
    Ok(())
}

fn clock(state: &Path) -> PathBuf {
    state.with_extension("clock")
}

fn said(state: &Path) -> PathBuf {
    state.with_extension("said")
}

fn make(
    file: &Path,
    limit: Duration,
    before: Option<&State>,
    boot: impl FnOnce(&Boot, &Path) -> Result<Command, GuestError>,
) -> Result<(), Failure> {
    let first = Boot::new()?;
    let new = file.with_extension("new");
    let mut qemu = boot(&first, &clock(file))?;
    let done = first.with(&mut qemu, limit, |qemu| {
        if before.is_some() {
            go_on(qemu, &first)?;
        }
        let mut monitor = Monitor::connect(&first.monitor(), qemu)?;
        monitor.wait_while("query-status", "status", &["running", "prelaunch"])?;
        monitor.execute("migrate", json!({ "uri": format!("file:{}", new.display()) }))?;
        let under_way = ["setup", "active", "device", "none"];
        match monitor.wait_while("query-migrate", "status", &under_way)?.as_str() {
            "completed" => monitor.execute("quit", json!({})).map(drop),
            other => Err(wrong(format!("the state of a booted guest could not be written: {other}"))),
        }
    });
    let said_before = before.map(State::said).transpose()?.unwrap_or_default();
    let results = first.read(first.results());
    match done {
        Err(error) => Err(first.output(&said_before).map_or(Failure::Error(error), Failure::Ended)),
        Ok(()) => {
            fs::write(said(file), said_before + &results).map_err(GuestError::file(file))?;
            Ok(fs::rename(&new, file).map_err(GuestError::file(file))?)
        }
    }
}

fn drop_oldest(folder: &Path) {
    let used =
        |path: &Path| path.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut states: Vec<PathBuf> = files.filter(|path| path.extension().is_none()).collect();
    states.sort_by_key(|path| std::cmp::Reverse(used(path)));
    for state in states.iter().skip(KEPT) {
        // Who cannot be dropped takes room, and no more.
        let _ = fs::remove_file(state).and_then(|()| fs::remove_file(state.with_extension("lock")));
        let _ = (fs::remove_file(clock(state)), fs::remove_file(said(state)));
    }
}

/// Waits until QEMU's thread that frees memory has nothing to do.
fn rest(pid_file: &Path) -> Result<(), GuestError> {
    let pid = fs::read_to_string(pid_file).map_err(GuestError::file(pid_file))?;
    let tasks = Path::new("/proc").join(pid.trim()).join("task");
    let threads = freeing(&tasks, pid.trim()).map_err(GuestError::file(&tasks))?;
    let waits = |thread: &PathBuf| {
        let call = fs::read_to_string(thread.join("syscall")).map_err(GuestError::file(thread))?;
        Ok(call.starts_with(FUTEX))
    };
    let began = Instant::now();
    let mut since = Instant::now();
    while since.elapsed() < REST {
        let waiting: Vec<bool> = threads.iter().map(waits).collect::<Result<_, GuestError>>()?;
        if !waiting.into_iter().all(|waits| waits) {
            since = Instant::now();
        }
        if began.elapsed() > PATIENCE {
            return Err(wrong("QEMU's thread call_rcu does not come to rest"));
        }
        thread::sleep(LOOK / 2);
    }
    Ok(())
}

/// The thread that frees memory. It is the first that QEMU makes, and may have been made before QEMU knew that threads
/// have names: then it has the program's.
fn freeing(tasks: &Path, pid: &str) -> std::io::Result<Vec<PathBuf>> {
    let name = |task: &Path| fs::read_to_string(task.join("comm"));
    let program = name(&tasks.join(pid))?;
    let mut found = Vec::new();
    for entry in fs::read_dir(tasks)? {
        let task = entry?.path();
        let name = name(&task)?;
        if name.trim() == "call_rcu" || (name == program && !task.ends_with(pid)) {
            found.push(task);
        }
    }
    if found.is_empty() { Err(std::io::Error::other("QEMU has no thread call_rcu")) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_contents_or_places_make_another_guest() {
        let folder = tempfile::tempdir().unwrap();
        let key = |place: &str, content: &str| {
            let host = folder.path().join("file");
            fs::write(&host, content).unwrap();
            let files = BTreeMap::from([(PathBuf::from(place), host)]);
            Key(DefaultHasher::new()).with("script").with_placed(&files).unwrap().number()
        };
        assert_eq!(key("/policy", "light"), key("/policy", "light"));
        assert_ne!(key("/policy", "light"), key("/policy", "both"));
        assert_ne!(key("/policy", "light"), key("/other", "light"));
    }
}
