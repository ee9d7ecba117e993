//! Hears of programs that come, so that none waits for the next step to be told.
//!
//! A newcomer writes a byte into a pipe in its folder, which the user's leader reads. The daemon watches the
//! folders instead, and so opens no pipe of a user's. Only the daemon: to end a watch takes the kernel
//! milliseconds, by which `hearth exec` would end later than its program.

use crate::pages::{Folder, SHARED_MEMORY, folder_names};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// A page appears by being moved to its name. What is no folder, or a link to one, is not watched.
const PAGES: WatchFlags = WatchFlags::MOVED_TO.union(WatchFlags::ONLYDIR).union(WatchFlags::DONT_FOLLOW);

/// Where a leader hears of newcomers.
#[derive(Debug)]
pub(crate) enum News {
    /// From one folder.
    Pipe(OwnedFd),
    /// From the folders of all users.
    Watch(OwnedFd),
}

impl News {
    /// Of one folder: what is made later is heard, what is there already is not.
    pub fn of_folder(folder: &Folder) -> Option<Self> {
        folder.pipe().map(Self::Pipe)
    }

    /// Of all users' folders.
    pub fn of_all() -> Option<Self> {
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        inotify::add_watch(&watch, SHARED_MEMORY, WatchFlags::CREATE | WatchFlags::MOVED_TO).ok()?;
        let news = Self::Watch(watch);
        news.watch_all();
        Some(news)
    }

    /// Watches the folders that have come. Those that are watched already stay.
    pub fn watch_all(&self) {
        let Self::Watch(watch) = self else { return };
        for (name, uid) in folder_names() {
            let path = Path::new(SHARED_MEMORY).join(name);
            // Each watch is one of few that a user may have, so nobody gets one for what is not theirs.
            if std::fs::symlink_metadata(&path).is_ok_and(|folder| folder.is_dir() && folder.uid() == uid) {
                // One that cannot be watched is looked at in each step.
                let _ = inotify::add_watch(watch, path, PAGES);
            }
        }
    }

    /// Readable when there is something.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Pipe(fd) | Self::Watch(fd) => fd.as_fd(),
        }
    }

    /// Whether there was something since this was asked last.
    pub fn any(&self) -> bool {
        let mut any = false;
        while rustix::io::read(self.fd(), &mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {
            any = true;
        }
        any
    }
}

/// Waits until one of these is readable, for so long at most.
pub(crate) fn wait(readable: &[BorrowedFd<'_>], most: Duration) {
    let most = Timespec::try_from(most).ok();
    let mut polled: Vec<_> = readable.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    // A signal ends it early, as anything else does.
    let _ = poll(&mut polled, most.as_ref());
}
