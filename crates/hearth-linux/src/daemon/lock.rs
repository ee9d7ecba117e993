//! Never more than one daemon.
//!
//! The lock file has the holder's process in its first line. A second line says since when it is
//! ending: the kernel takes the scheduler back in the meantime, and whoever starts next waits.

use crate::Error;
use hearth_host::clock::since_boot;
use rustix::fs::{FlockOperation, flock};
use serde::{Serialize, Serializer};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long one that is ending is waited for.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How often it is looked whether it has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The lock; let go when it is dropped or the process ends.
#[derive(Debug)]
pub struct Held {
    file: File,
    path: PathBuf,
}

impl Held {
    /// Tells others from now on that this process is ending.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        writeln!(self.file, "{}", since_boot().as_millis()).map_err(Error::file(&self.path))
    }
}

/// Who has the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// The process, if it has said so yet.
    pub pid: Option<u32>,
    /// For how long it has been ending, if it is.
    #[serde(rename = "for_s", serialize_with = "seconds")]
    pub ending_for: Option<Duration>,
}

impl Holder {
    fn read(file: &mut File) -> Self {
        let mut text = String::new();
        // What cannot be read is not known.
        let _ = file.rewind().and_then(|()| file.read_to_string(&mut text));
        Self::parse(&text)
    }

    fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let pid = lines.next().and_then(|line| line.parse().ok());
        let since = lines.next().and_then(|line| line.parse().ok()).map(Duration::from_millis);
        Self { pid, ending_for: since.map(|since| since_boot().saturating_sub(since)) }
    }

    fn refusal(self) -> Error {
        match self.ending_for {
            Some(ending_for) => Error::Ending { pid: self.pid, ending_for },
            None => Error::Running { pid: self.pid },
        }
    }
}

fn seconds<S: Serializer>(time: &Option<Duration>, out: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64()).serialize(out)
}

/// Takes the lock, or says who has it.
pub(super) fn hold(folder: &Path) -> Result<Held, Error> {
    fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let path = folder.join("lock");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(Error::file(&path))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(Holder::read(&mut file).refusal());
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(Error::file(&path))?;
    Ok(Held { file, path })
}

/// Takes the lock, and waits for it as long as `patience` while who has it is ending; `tell` is told
/// of that once. Who has let go of the scheduler may need `notice` to learn that it is ending.
pub(super) fn hold_after(
    folder: &Path,
    notice: Duration,
    patience: Duration,
    mut tell: impl FnMut(&Holder),
) -> Result<Held, Error> {
    let begin = Instant::now();
    let mut told = false;
    loop {
        let holder = match hold(folder) {
            Err(Error::Running { .. }) if begin.elapsed() < notice => None,
            Err(Error::Ending { pid, ending_for }) if begin.elapsed() < patience => {
                Some(Holder { pid, ending_for: Some(ending_for) })
            }
            taken => return taken,
        };
        if let Some(holder) = holder.filter(|_| !std::mem::replace(&mut told, holder.is_some())) {
            tell(&holder);
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Who holds the lock; `None` if nobody does.
pub fn holder(folder: &Path) -> Option<Holder> {
    let mut file = File::open(folder.join("lock")).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        return None;
    }
    Some(Holder::read(&mut file))
}

/// Waits until nobody holds the lock, for as long as `patience`; who still holds it then.
pub fn await_end(folder: &Path, patience: Duration) -> Option<Holder> {
    let begin = Instant::now();
    loop {
        let holder = holder(folder)?;
        if begin.elapsed() >= patience {
            return Some(holder);
        }
        thread::sleep(LOOK_AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Longer than any test runs.
    const LONG: Duration = Duration::from_secs(600);

    fn own() -> Option<u32> {
        Some(std::process::id())
    }

    #[test]
    fn the_second_of_two_is_told_who_is_first() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(holder(folder.path()), None);
        let held = hold(folder.path()).unwrap();
        assert_eq!(holder(folder.path()), Some(Holder { pid: own(), ending_for: None }));
        assert!(matches!(hold(folder.path()), Err(Error::Running { pid }) if pid == own()));
        drop(held);
        assert_eq!(holder(folder.path()), None);
        hold(folder.path()).unwrap();
    }

    #[test]
    fn one_that_is_ending_says_for_how_long() {
        let folder = tempfile::tempdir().unwrap();
        let mut held = hold(folder.path()).unwrap();
        held.end().unwrap();
        let holder = holder(folder.path()).unwrap();
        assert_eq!(holder.pid, own());
        assert!(holder.ending_for.is_some_and(|time| time < LONG), "{holder:?}");
        let error = hold(folder.path()).unwrap_err();
        assert!(matches!(error, Error::Ending { pid, .. } if pid == own()), "{error}");
        drop(held);
        assert_eq!(super::holder(folder.path()), None);
        hold(folder.path()).unwrap();
        assert_eq!(super::holder(folder.path()), None, "the next one does not inherit the end");
    }

    #[test]
    fn who_comes_next_waits_for_one_that_is_ending() {
        let folder = tempfile::tempdir().unwrap();
        let mut held = hold(folder.path()).unwrap();
        held.end().unwrap();
        let (waits, waiting) = mpsc::channel();
        thread::scope(|scope| {
            let next =
                scope.spawn(|| hold_after(folder.path(), LONG, LONG, |holder| waits.send(*holder).unwrap()));
            assert_eq!(waiting.recv().unwrap().pid, own());
            drop(held);
            next.join().unwrap().unwrap();
        });
        assert!(waiting.try_recv().is_err(), "it is told once");
    }

    #[test]
    fn one_that_may_not_know_yet_that_it_is_ending_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut held = hold(folder.path()).unwrap();
        thread::scope(|scope| {
            let next = scope.spawn(|| hold_after(folder.path(), LONG, LONG, |_| {}));
            held.end().unwrap();
            drop(held);
            next.join().unwrap().unwrap();
        });
        let _held = hold(folder.path()).unwrap();
        let error = hold_after(folder.path(), Duration::ZERO, LONG, |_| {}).unwrap_err();
        assert!(matches!(error, Error::Running { .. }), "{error}");
    }

    #[test]
    fn patience_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut held = hold(folder.path()).unwrap();
        held.end().unwrap();
        let error = hold_after(folder.path(), LONG, Duration::ZERO, |_| {}).unwrap_err();
        assert!(matches!(error, Error::Ending { .. }), "{error}");
        assert_eq!(await_end(folder.path(), Duration::ZERO).and_then(|holder| holder.pid), own());
        drop(held);
        assert_eq!(await_end(folder.path(), Duration::ZERO), None);
    }

    #[test]
    fn a_lock_file_that_makes_no_sense_names_nobody() {
        for text in ["", "x", "\n\n", "-1\nx", "99999999999\n-5"] {
            assert_eq!(Holder::parse(text), Holder::default(), "{text:?}");
        }
    }
}
