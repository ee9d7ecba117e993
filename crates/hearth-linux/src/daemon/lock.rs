//! Never more than one daemon.

use crate::Error;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

/// The lock; let go when it is dropped or the process ends.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "holds the lock")] File);

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
        return Err(Error::Running { pid: read_pid(&mut file) });
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(Error::file(&path))?;
    Ok(Held(file))
}

/// The process that holds the lock; `None` if nobody does.
pub fn holder(folder: &Path) -> Option<u32> {
    let mut file = File::open(folder.join("lock")).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        return None;
    }
    read_pid(&mut file)
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_of_two_is_told_who_is_first() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(holder(folder.path()), None);
        let held = hold(folder.path()).unwrap();
        assert_eq!(holder(folder.path()), Some(std::process::id()));
        assert!(
            matches!(hold(folder.path()), Err(Error::Running { pid }) if pid == Some(std::process::id()))
        );
        drop(held);
        assert_eq!(holder(folder.path()), None);
        hold(folder.path()).unwrap();
    }
}
