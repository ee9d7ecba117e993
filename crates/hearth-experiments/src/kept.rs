//! Runs that are kept in a folder, so that what takes hours can go on where it was stopped.

use crate::job::{Job, Run, Workload};
use serde::{Deserialize, Serialize};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use thiserror::Error;

/// A folder of runs, a file each. A run is taken only by the program that has done it, to the byte, and for
/// the same job: what would come out is what is there.
#[derive(Debug)]
pub struct Kept {
    folder: PathBuf,
    program: u64,
    taken: AtomicUsize,
}

/// Why a run cannot be kept, or taken.
#[derive(Debug, Error)]
pub enum KeptError {
    /// The program cannot read itself.
    #[error("cannot read the program's own file, of which kept runs are: {0}")]
    Program(Error),
    /// There is no such folder, and it cannot be made.
    #[error("{}: {error}; name a folder that you may write to", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        error: Error,
    },
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Error,
    },
    /// The file is no run.
    #[error("{} holds no run of this program: {error}; delete it, and the run is done again", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        error: serde_json::Error,
    },
}

#[derive(Deserialize, Serialize)]
struct File {
    job: String,
    run: Run,
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Kept {
    /// The runs in a folder, which is made if it is not there.
    ///
    /// # Errors
    /// [`KeptError`].
    pub fn open(folder: &Path) -> Result<Self, KeptError> {
        let program = fs::read("/proc/self/exe").map(hash_of).map_err(KeptError::Program)?;
        let made = fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder));
        made.map_err(|error| KeptError::Folder { folder: folder.to_owned(), error })?;
        Ok(Self { folder: folder.to_owned(), program, taken: AtomicUsize::new(0) })
    }

    /// How many runs were taken from the folder.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// The job in words, and its file. A recording may change, and what is studied of misses or
    /// estimated of runs is not written.
    fn place(&self, job: &Job) -> Option<(String, PathBuf)> {
        let options = &job.options;
        if matches!(job.workload, Workload::Trace { .. }) || options.record_misses || options.record_runs {
            return None;
        }
        let words = format!("{job:?}");
        let path = self.folder.join(format!("{:016x}.json", hash_of((self.program, &words))));
        Some((words, path))
    }

    /// The run that a job would be, if it is there.
    pub(crate) fn find(&self, job: &Job) -> Result<Option<Run>, KeptError> {
        let Some((words, path)) = self.place(job) else { return Ok(None) };
        let content = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            content => content.map_err(|error| KeptError::File { path: path.clone(), error })?,
        };
        let file: File =
            serde_json::from_slice(&content).map_err(|error| KeptError::Content { path, error })?;
        if file.job != words {
            return Ok(None);
        }
        self.taken.fetch_add(1, Ordering::Relaxed);
        Ok(Some(file.run))
    }

    /// Writes a run, whole or not at all.
    pub(crate) fn keep(&self, job: &Job, run: &Run) -> Result<(), KeptError> {
        let Some((job, path)) = self.place(job) else { return Ok(()) };
        let write = || {
            let mut file = tempfile::Builder::new().prefix(".hearth-").tempfile_in(&self.folder)?;
            file.write_all(&serde_json::to_vec(&File { job, run: run.clone() })?)?;
            file.persist(&path).map_err(|error| error.error)
        };
        write().map(drop).map_err(|error| KeptError::File { path: path.clone(), error })
    }
}
