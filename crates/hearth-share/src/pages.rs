//! The folder of a user's pages. Whatever is in it, that user may have put there: so nothing is
//! believed, nothing is followed, and nothing is mapped.

use crate::machine::Process;
use crate::observe::Following;
use hearth_hints::page::{Page, Why};
use hearth_host::clock::now_ns;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, fstat, mknodat, open, openat, openat2, unlinkat,
};
use rustix::io::{pread, pwrite};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Where the folders of all users are.
pub const SHARED_MEMORY: &str = "/dev/shm";

/// The name of the pipe of a folder, as `hints.c` has it.
const PIPE: &str = "news";

/// More files than a user has processes are not looked at.
const MAX_FILES: usize = 10_000;

const NO_LINKS: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// A folder of pages.
#[derive(Debug)]
pub struct Folder {
    file: OwnedFd,
    uid: u32,
}

/// A page with the process that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The process.
    pub pid: i32,
    /// What it says.
    pub page: Page,
}

impl Found {
    /// The process as a follower.
    pub fn following(&self) -> Following {
        let told = if self.page.is_told(now_ns()) { self.page.cpus } else { 0 };
        Following { id: (self.pid, self.page.start_time), want: self.page.want, told }
    }
}

/// The folder of the user that this process runs as.
pub fn own_folder() -> PathBuf {
    match std::env::var_os("HEARTH_DIR").filter(|name| !name.is_empty()) {
        Some(name) => name.into(),
        None => Path::new(SHARED_MEMORY).join(format!("hearth-{}", rustix::process::geteuid().as_raw())),
    }
}

/// The folders of all users that are right.
pub fn all_folders() -> Vec<Folder> {
    let Ok(above) = open(SHARED_MEMORY, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
        return Vec::new();
    };
    folder_names()
        .filter_map(|(name, uid)| {
            // What a user has mounted there could keep its reader waiting.
            let within = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
            let file = openat2(&above, name, OFlags::DIRECTORY | NO_LINKS, Mode::empty(), within).ok()?;
            Folder::checked(file, uid)
        })
        .collect()
}

/// What may be a folder of pages by its name, with the user that it would be of.
pub(crate) fn folder_names() -> impl Iterator<Item = (String, u32)> {
    let entries = std::fs::read_dir(SHARED_MEMORY).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let uid = name.strip_prefix("hearth-")?.parse().ok()?;
        Some((name, uid))
    })
}

impl Folder {
    /// This folder, made if need be; `None` unless it is one of this user alone.
    pub fn open(path: &Path) -> Option<Self> {
        // It may be there already.
        let _ = rustix::fs::mkdir(path, Mode::RWXU);
        let file = open(path, OFlags::DIRECTORY | NO_LINKS, Mode::empty()).ok()?;
        Self::checked(file, rustix::process::geteuid().as_raw())
    }

    fn checked(file: OwnedFd, uid: u32) -> Option<Self> {
        let found = fstat(&file).ok()?;
        (found.st_uid == uid && found.st_mode & 0o077 == 0).then_some(Self { file, uid })
    }

    /// A file of this folder that is no page, such as the leader's lock.
    pub fn lock_file(&self, name: &str) -> Option<OwnedFd> {
        openat(&self.file, name, OFlags::RDWR | OFlags::CREATE | NO_LINKS, Mode::RUSR | Mode::WUSR).ok()
    }

    /// The pipe into which newcomers write, for their leader, made if need be.
    pub(crate) fn pipe(&self) -> Option<OwnedFd> {
        // It may be there already.
        let _ = mknodat(&self.file, PIPE, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
        self.open_pipe()
    }

    fn open_pipe(&self) -> Option<OwnedFd> {
        let pipe = openat(&self.file, PIPE, OFlags::RDWR | NO_LINKS, Mode::empty()).ok()?;
        let is_pipe =
            fstat(&pipe).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Fifo);
        is_pipe.then_some(pipe)
    }

    /// Has the leader hear that there is a new page.
    pub fn tell_leader(&self) {
        if let Some(pipe) = self.open_pipe() {
            // A pipe that is full tells it, too.
            let _ = rustix::io::write(&pipe, &[0]);
        }
    }

    /// The pages of processes that are there and this user's. Those of processes that are gone are
    /// removed.
    pub fn pages(&self) -> Vec<Found> {
        let Ok(entries) = rustix::fs::Dir::read_from(&self.file) else { return Vec::new() };
        let names = entries.flatten().take(MAX_FILES).filter_map(|entry| {
            let name = entry.file_name().to_str().ok()?.to_owned();
            let pid: i32 = name.strip_prefix('.').unwrap_or(&name).parse().ok()?;
            (pid > 0).then_some((name, pid))
        });
        names.filter_map(|(name, pid)| self.page(&name, pid)).collect()
    }

    fn page(&self, name: &str, pid: i32) -> Option<Found> {
        let Some(process) = Process::now(pid) else {
            self.remove(name);
            return None;
        };
        let page = self.read(name)?;
        if name.starts_with('.') || page.pid != pid as u32 || !self.is_owner_of(pid) {
            return None;
        }
        if page.start_time != process.start {
            self.remove(name);
            return None;
        }
        Some(Found { pid, page })
    }

    fn is_owner_of(&self, pid: i32) -> bool {
        rustix::fs::stat(format!("/proc/{pid}")).is_ok_and(|found| found.st_uid == self.uid)
    }

    fn read(&self, name: &str) -> Option<Page> {
        let mut bytes = [0; Page::SIZE];
        let file = self.file_of(name)?;
        (pread(&file, &mut bytes, 0) == Ok(Page::SIZE)).then(|| Page::read(&bytes))?
    }

    fn file_of(&self, name: &str) -> Option<OwnedFd> {
        let file = openat(&self.file, name, OFlags::RDWR | NO_LINKS, Mode::empty()).ok()?;
        let found = fstat(&file).ok()?;
        let is_right = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
            && found.st_uid == self.uid
            && found.st_nlink == 1;
        is_right.then_some(file)
    }

    /// Tells a process its number. Whether it has been told.
    pub fn tell(&self, pid: i32, cpus: u32, why: Why, milli: u32, told_ns: u64) -> bool {
        let Some(file) = self.file_of(&pid.to_string()) else { return false };
        let is_whole = fstat(&file).is_ok_and(|found| found.st_size >= Page::SIZE as i64);
        is_whole
            && pwrite(&file, &milli.to_ne_bytes(), Page::MILLI).is_ok()
            && pwrite(&file, &Page::said(cpus, why, told_ns), Page::SAID).is_ok()
    }

    fn remove(&self, name: &str) {
        // What cannot be removed is seen again.
        let _ = unlinkat(&self.file, name, AtFlags::empty());
    }
}
