//! A cgroup for one program, of those that Hearth gives a class: made for it, and removed after it.
//!
//! ```text
//! hearth.best-effort              made by the first program of the class, removed with the last
//! hearth.best-effort/exec-4242    the program that process 4242 waits for, and all that it begins
//! ```
//!
//! Who starts the program enters first and leaves when it has started it, so that nothing that the program
//! begins can be missed. What outlives the program keeps the cgroup; so does a program that nobody waits for
//! any more. The next one of the class removes what such leave behind.

use super::{LETTING_GO, descendants, limit, of_process};
use crate::Error;
use crate::cpuset::{enter, go_back};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;

/// Others of the class may remove its folder, or a cgroup that nobody has entered yet, at any moment.
const TRIES: usize = 20;

/// What names of the cgroups begin with.
const PREFIX: &str = "exec-";

/// A cgroup of a program's own, for as long as this lives.
#[derive(Debug)]
pub struct Own {
    folder: PathBuf,
    /// Where this process was, while it is in there.
    back: Option<PathBuf>,
}

impl Own {
    /// Makes one below the folder of a class, and has this process enter it.
    ///
    /// # Errors
    /// What the system refuses; or that this process would lose what its cgroup means for it.
    pub fn enter(class: &Path) -> Result<Self, Error> {
        let root = class.parent().unwrap_or(class);
        let pid = std::process::id().cast_signed();
        let back = of_process(root, pid)?;
        if let Some(why) = limit(root, &back) {
            return Err(crate::cpuset::wrong(pid, why));
        }
        sweep(class);
        // Dropped where nothing could be entered, it takes back what was made.
        let mut own = Self { folder: class.join(format!("{PREFIX}{pid}")), back: None };
        let mut entered = Err(io::Error::from(ErrorKind::NotFound));
        for _ in 0..TRIES {
            entered = make(&own.folder).and_then(|()| enter(&own.folder, pid));
            if !matches!(&entered, Err(error) if error.kind() == ErrorKind::NotFound) {
                break;
            }
        }
        entered.map_err(Error::file(&own.folder))?;
        own.back = Some(back);
        Ok(own)
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Has this process go back to where it was; what it has started stays.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn leave(&mut self) -> Result<(), Error> {
        let Some(back) = self.back.take() else { return Ok(()) };
        go_back(&back, std::process::id().cast_signed()).map_err(Error::file(back))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.leave();
        remove_patiently(&self.folder, || thread::sleep(LETTING_GO));
    }
}

fn make(folder: &Path) -> io::Result<()> {
    let make = |folder| match fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    };
    folder.parent().map_or(Ok(()), make)?;
    make(folder)
}

/// Removes a cgroup, and the folder of its class. What stays after so many tries is in use, or is removed by the
/// next program of the class.
fn remove_patiently(folder: &Path, mut pause: impl FnMut()) {
    for _ in 0..TRIES {
        remove(folder);
        if !folder.exists() {
            break;
        }
        pause();
    }
}

/// Removes a cgroup, and the folder of its class, where nobody is in them.
fn remove(folder: &Path) {
    remove_empty(folder);
    if let Some(class) = folder.parent() {
        let _ = fs::remove_dir(class);
    }
}

/// Removes the cgroups of a class in which nobody is.
fn sweep(class: &Path) {
    let below = fs::read_dir(class).into_iter().flatten().flatten();
    let own = below.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    own.for_each(|entry| remove_empty(&entry.path()));
}

/// With those that a program has made in its own. A program that runs may need them, and has them stay.
fn remove_empty(folder: &Path) {
    let events = fs::read_to_string(folder.join("cgroup.events")).unwrap_or_default();
    if events.lines().all(|line| line != "populated 1") {
        for folder in descendants(folder).into_iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let class = root.path().join("hearth.best-effort");
        (root, class)
    }

    fn populate(folder: &Path) {
        fs::write(folder.join("cgroup.events"), "populated 1\nfrozen 0\n").unwrap();
    }

    #[test]
    fn the_last_program_of_a_class_takes_the_folder_with_it() {
        let (_root, class) = class();
        let [one, other] = [class.join("exec-1"), class.join("exec-2")];
        for folder in [&one, &other, &other] {
            make(folder).unwrap();
        }
        remove(&one);
        assert!(!one.exists() && other.exists());
        remove(&other);
        assert!(!class.exists());
    }

    #[test]
    fn what_was_left_behind_is_removed_and_what_is_in_use_stays() {
        let (_root, class) = class();
        let [empty, nested, used, anothers] =
            ["exec-1", "exec-2", "exec-3", "mine"].map(|name| class.join(name));
        for folder in [&empty, &nested, &used, &anothers] {
            make(folder).unwrap();
        }
        for folder in [&nested, &used] {
            fs::create_dir(folder.join("inner")).unwrap();
        }
        populate(&used);
        sweep(&class);
        assert!(!empty.exists() && !nested.exists());
        assert!(used.join("inner").exists() && anothers.exists());
        remove(&used);
        assert!(used.join("inner").exists());
    }

    #[test]
    fn what_the_kernel_lets_go_of_a_moment_later_is_removed_too() {
        let (_root, class) = class();
        let own = class.join("exec-1");
        make(&own).unwrap();
        populate(&own);
        let mut pauses = 0;
        remove_patiently(&own, || {
            pauses += 1;
            if pauses == 3 {
                fs::remove_file(own.join("cgroup.events")).unwrap();
            }
        });
        assert_eq!(pauses, 3);
        assert!(!class.exists());
    }

    #[test]
    fn where_nothing_can_be_entered_nothing_stays() {
        let (_root, class) = class();
        // A folder that is no cgroup has no file by which to enter.
        let refused = Own::enter(&class).unwrap_err().to_string();
        assert!(refused.contains("hearth.best-effort/exec-"), "{refused}");
        assert!(!class.exists());
    }
}
