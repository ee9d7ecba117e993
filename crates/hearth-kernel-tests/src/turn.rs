//! As many guests at a time as there are CPUs, whichever processes boot them.

use std::env;
use std::fs::{File, OpenOptions, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use crate::outcome::booted;

/// How often somebody who waits looks.
const LOOK: Duration = Duration::from_millis(50);

/// Waits for a turn, which lasts until what is returned is dropped, or the process ends.
///
/// # Panics
/// Where a file that stands for a turn cannot be made.
pub fn turn() -> Turn {
    Turn { _file: wait(), began: Instant::now() }
}

/// A turn. When it ends, how long it took is noted.
pub struct Turn {
    _file: File,
    began: Instant,
}

impl Drop for Turn {
    fn drop(&mut self) {
        booted(self.began.elapsed());
    }
}

fn wait() -> File {
    let folder = env::temp_dir().join(format!("hearth-guests-{}", rustix::process::getuid().as_raw()));
    std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let turns = thread::available_parallelism().map_or(1, usize::from);
    loop {
        for turn in 0..turns {
            let path = folder.join(turn.to_string());
            let file = OpenOptions::new().create(true).append(true).open(&path);
            let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            match file.try_lock() {
                Ok(()) => return file,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => panic!("{}: {error}", path.display()),
            }
        }
        thread::sleep(LOOK);
    }
}
