//! What Hearth changed on the host, written down before it is done, so that it can be undone
//! whatever happens in between.
//!
//! The file is lines of JSON: a header that names the boot of the machine, then the changes in their
//! order. A last line without its end was cut off by a crash before its change was made. Any other
//! line that cannot be read is damage: the file is kept aside, and what can be read is undone.
//!
//! A change that is made again and again, such as a weight, stands there in its last form: that takes the
//! place of the one before, which may still be in the file for a while.

mod change;

pub use change::Change;

use crate::{Error, Outcome, task};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The file in the folder of states.
pub const NAME: &str = "journal";

/// A journal with more changes than this loses those whose tasks are gone.
const COMPACT_ABOVE: usize = 1024;

/// Lines in the file that others have taken the place of, at most.
const REPLACED: usize = 64;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// The version of the format.
    hearth_journal: u32,
    boot: String,
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    /// Nothing until there is a change.
    file: Option<File>,
    changes: Vec<Change>,
    /// Lines in the file that others have taken the place of.
    replaced: usize,
    compact_above: usize,
}

impl Journal {
    /// Begins an empty one, which is on the disk from its first change on. There must be none:
    /// [`undo`] removes it.
    pub fn begin(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::file(folder))?;
        let path = folder.join(NAME);
        if path.exists() {
            return Err(Error::file(path)(ErrorKind::AlreadyExists.into()));
        }
        Ok(Self {
            folder: folder.to_owned(),
            file: None,
            changes: Vec::new(),
            replaced: 0,
            compact_above: COMPACT_ABOVE,
        })
    }

    /// Writes changes down, and makes them when they are on the disk. Returns those that the system
    /// refused; a task that is gone is none of them.
    ///
    /// # Errors
    /// If they cannot be written down. Then none is made.
    pub fn make(&mut self, changes: Vec<Change>) -> Result<Vec<(Change, Errno)>, Error> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        self.compact()?;
        let mut text = Vec::new();
        changes.iter().try_for_each(|change| line(&mut text, change)).map_err(self.error())?;
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.write_whole()?,
        };
        file.write_all(&text).and_then(|()| file.sync_data()).map_err(self.error())?;
        self.file = Some(file);
        let mut refused = Vec::new();
        for change in &changes {
            match change.make() {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => refused.push((change.clone(), error)),
            }
        }
        self.replaced += changes.into_iter().map(|change| add(&mut self.changes, change)).sum::<usize>();
        Ok(refused)
    }

    /// Forgets changes that are no longer Hearth's to undo.
    ///
    /// # Errors
    /// If they cannot be taken out of the file. The next change tries again.
    pub fn forget(&mut self, is_over: impl Fn(&Change) -> bool) -> Result<(), Error> {
        let before = self.changes.len();
        self.changes.retain(|change| !is_over(change));
        if self.changes.len() < before {
            self.file = None;
            self.file = Some(self.write_whole()?);
        }
        Ok(())
    }

    fn compact(&mut self) -> Result<(), Error> {
        let is_long = self.changes.len() > self.compact_above;
        if is_long {
            self.changes.retain(Change::is_alive);
            self.compact_above = COMPACT_ABOVE.max(2 * self.changes.len());
        }
        if is_long || self.replaced >= REPLACED {
            self.file = Some(self.write_whole()?);
        }
        Ok(())
    }

    fn write_whole(&mut self) -> Result<File, Error> {
        let file = write_whole(&self.folder, &self.changes)?;
        self.replaced = 0;
        Ok(file)
    }

    fn error<E: Into<std::io::Error>>(&self) -> impl FnOnce(E) -> Error {
        let path = self.folder.join(NAME);
        move |error| Error::file(path)(error.into())
    }
}

/// What undoing found.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Each change and what became of it, the last one first.
    pub changes: Vec<Undone>,
    /// The journal could not be read in full.
    pub damage: Option<Damage>,
    /// The machine was booted since the journal was written, which undid everything.
    pub booted_since: bool,
}

/// A change and what became of it.
#[derive(Debug, Serialize)]
pub struct Undone {
    /// In words.
    pub what: String,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// A journal that cannot be read in full.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Where it is kept.
    pub kept: PathBuf,
    /// The lines that make no sense, from 1.
    pub lines: Vec<usize>,
}

impl Report {
    /// Changes that are still in force because the system refused to undo them.
    pub fn failed(&self) -> usize {
        self.changes.iter().filter(|undone| matches!(undone.outcome, Outcome::Failed(_))).count()
    }

    /// Whether there was nothing to say.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.damage.is_none()
    }
}

/// Undoes what the journal says, the last change first. What could not be undone stays in it.
/// The caller holds the daemon's lock.
pub fn undo(folder: &Path) -> Result<Report, Error> {
    let path = folder.join(NAME);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Report::default()),
        Err(error) => return Err(Error::file(path)(error)),
    };
    let read = Read::parse(&bytes);
    let mut report =
        Report { booted_since: read.boot.is_some_and(|boot| !is_this_boot(&boot)), ..Report::default() };
    let mut left = Vec::new();
    for change in read.changes.into_iter().rev() {
        let outcome = if report.booted_since { Outcome::Gone } else { change.undo() };
        report.changes.push(Undone { what: change.to_string(), outcome: outcome.clone() });
        if matches!(outcome, Outcome::Failed(_)) {
            left.insert(0, change);
        }
    }
    if !read.damaged.is_empty() {
        report.damage = Some(Damage { kept: keep_aside(folder)?, lines: read.damaged });
    }
    if left.is_empty() {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::file(path)(error)),
            _ => {}
        }
        sync_folder(folder)?;
    } else {
        write_whole(folder, &left)?;
    }
    Ok(report)
}

/// Adds a change, in place of those that it is the last form of. Returns how many these were.
fn add(changes: &mut Vec<Change>, change: Change) -> usize {
    let before = changes.len();
    changes.retain(|old| !change.replaces(old));
    let replaced = before - changes.len();
    changes.push(change);
    replaced
}

fn is_this_boot(boot: &str) -> bool {
    task::boot_id().is_ok_and(|now| now == boot)
}

/// What a journal holds.
struct Read {
    boot: Option<String>,
    changes: Vec<Change>,
    damaged: Vec<usize>,
}

impl Read {
    fn parse(bytes: &[u8]) -> Self {
        let mut read = Self { boot: None, changes: Vec::new(), damaged: Vec::new() };
        for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let Some(line) = line.strip_suffix(b"\n") else { break };
            let header =
                || serde_json::from_slice::<Header>(line).ok().filter(|header| header.hearth_journal == 1);
            if let Ok(change) = serde_json::from_slice(line) {
                add(&mut read.changes, change);
            } else if let (0, Some(header)) = (index, header()) {
                read.boot = Some(header.boot);
            } else {
                read.damaged.push(index + 1);
            }
        }
        read
    }
}

/// Writes a journal anew, so that it is whole or the one before.
fn write_whole(folder: &Path, changes: &[Change]) -> Result<File, Error> {
    let path = folder.join(NAME);
    let beside = folder.join(".journal");
    let mut text = Vec::new();
    let header = Header { hearth_journal: 1, boot: task::boot_id()? };
    let written = line(&mut text, &header)
        .and_then(|()| changes.iter().try_for_each(|change| line(&mut text, change)))
        .map_err(std::io::Error::from)
        .and_then(|()| OpenOptions::new().write(true).create(true).truncate(true).open(&beside))
        .and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&beside, &path)?;
            Ok(file)
        });
    let file = written.map_err(Error::file(&path))?;
    sync_folder(folder)?;
    Ok(file)
}

fn line(text: &mut Vec<u8>, content: &impl Serialize) -> Result<(), serde_json::Error> {
    serde_json::to_writer(&mut *text, content)?;
    text.push(b'\n');
    Ok(())
}

fn keep_aside(folder: &Path) -> Result<PathBuf, Error> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let kept = folder.join(format!("{NAME}.damaged-{seconds}"));
    fs::copy(folder.join(NAME), &kept).map_err(Error::file(&kept))?;
    Ok(kept)
}

fn sync_folder(folder: &Path) -> Result<(), Error> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::file(folder))
}

#[cfg(test)]
mod tests;
