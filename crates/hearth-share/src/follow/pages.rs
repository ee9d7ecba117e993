//! Pages as the waiting process sees them: it reads those of the programs, and makes one where a program
//! has none.

use crate::pages::Folder;
use hearth_hints::page::Page;
use hearth_host::task::Thread;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The folder of pages.
pub struct Pages {
    folder: PathBuf,
}

impl Pages {
    /// Of this folder.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The page of a process.
    pub fn of(&self, pid: u32) -> Option<Page> {
        read(&self.path(pid))
    }

    /// CPUs that processes of lower numbers have.
    pub fn ahead_of(&self, pid: u32) -> usize {
        let Ok(entries) = fs::read_dir(&self.folder) else { return 0 };
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
        let lower = entries.flatten().filter_map(number).filter(|other| *other < pid);
        lower.filter_map(|other| self.of(other)).map(|page| page.cpus as usize).sum()
    }

    /// The path of a process's page.
    pub fn path(&self, pid: u32) -> PathBuf {
        self.folder.join(pid.to_string())
    }

    /// Makes a page for a process that has none yet, which says already what another was told. One that it
    /// has made itself stays.
    pub fn make(&self, pid: u32, told: Page) -> io::Result<Made> {
        let process = Thread::now(pid as i32).ok_or(io::ErrorKind::NotFound)?;
        let path = self.path(pid);
        let beside = self.folder.join(format!(".exec-{pid}"));
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
        let made = file
            .write_all(&Page::begun_as_told(pid, process.start, &told))
            .and_then(|()| Ok(renameat_with(CWD, &beside, CWD, &path, RenameFlags::NOREPLACE)?));
        if let Err(error) = made {
            fs::remove_file(&beside)?;
            return Err(error);
        }
        if let Some(folder) = Folder::open(&self.folder) {
            folder.tell_leader();
        }
        Ok(Made(path))
    }
}

/// A page that was made here, and goes with this.
pub struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn read(path: &Path) -> Option<Page> {
    let mut bytes = [0; Page::SIZE];
    let file =
        File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path).ok()?;
    file.read_exact_at(&mut bytes, 0).ok()?;
    Page::read(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Pages) {
        let folder = tempfile::tempdir().unwrap();
        let pages = Pages::new(folder.path().to_owned());
        (folder, pages)
    }

    #[test]
    fn a_page_that_is_made_here_is_read_and_goes() {
        let (folder, pages) = folder();
        let pid = std::process::id();
        let told = Page { cpus: 3, why: 2, told_ns: 1 << 40, milli: 2900, ..Page::default() };
        let made = pages.make(pid, told).unwrap();
        let page = pages.of(pid).unwrap();
        assert_eq!((page.pid, page.want), (pid, 0));
        assert_eq!((page.cpus, page.why, page.told_ns, page.milli), (3, 2, 1 << 40, 2900));
        assert_eq!(Some(page.start_time), Thread::now(pid as i32).map(|process| process.start));
        assert!(pages.make(pid, told).is_err(), "one that is there stays");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        drop(made);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_no_page_is_none() {
        let (folder, pages) = folder();
        fs::write(folder.path().join("1"), "short").unwrap();
        fs::write(folder.path().join("2"), [7; 64]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("3")).unwrap();
        assert!((0..4).all(|pid| pages.of(pid).is_none()));
        assert_eq!(pages.ahead_of(9), 0);
    }

    #[test]
    fn those_ahead_are_counted_by_what_they_were_told() {
        let (_folder, pages) = folder();
        for (pid, cpus) in [(5u32, 2u32), (7, 3), (9, 4)] {
            let told = Page { cpus, ..Page::default() };
            fs::write(pages.path(pid), Page::begun_as_told(pid, 1, &told)).unwrap();
        }
        assert_eq!((pages.ahead_of(5), pages.ahead_of(9), pages.ahead_of(10)), (0, 5, 9));
    }
}
