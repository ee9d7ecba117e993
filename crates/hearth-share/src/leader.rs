//! Who says the numbers: the daemon, for all users; without one, one `hearth exec` of each user.

use crate::machine::Paced;
use crate::news::{News, wait};
use crate::observe::{Following, Observer};
use crate::pages::{Folder, Found, all_folders};
use crate::reason::numbers;
use crate::steady::Steady;
use hearth_hints::page::Why;
use hearth_host::clock::now_ns;
use hearth_host::task::Thread;
use hearth_host::times::Times;
use rustix::fs::{FlockOperation, flock};
use std::collections::HashMap;
use std::fs;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often numbers are made.
pub const STEP: Duration = Duration::from_millis(100);
/// A caller that comes a little early is not sent away.
const EARLY: Duration = Duration::from_millis(10);
/// How often the daemon looks for programs while there are none. It hears of those that come.
const QUIET_STEP: Duration = Duration::from_secs(1);
/// How often a number that stays is said again.
const RENEW: Duration = Duration::from_secs(1);

/// Of a CPU, what steps may take, and what telling newcomers between them, and how close that may be.
const SHARE: f64 = 0.1;
const NEWS_EVERY: Duration = Duration::from_millis(1);

/// Where the daemon says that it leads.
fn announcement() -> PathBuf {
    hearth_host::run_folder().join("leader")
}

/// Says numbers as long as no other does.
#[derive(Debug)]
pub struct Leader {
    scope: Scope,
    lock: Option<OwnedFd>,
    leads: bool,
    stepped_at: Option<Instant>,
    news: Option<News>,
    /// Whether programs have come since numbers were said.
    has_news: bool,
    /// Whether there were none.
    is_alone: bool,
    between: Paced,
    observer: Observer,
    steady: Steady,
    said: HashMap<i32, Said>,
}

/// Whose pages are written.
#[derive(Debug)]
enum Scope {
    /// Those of one folder.
    One { folder: Option<Arc<Folder>>, daemon: PathBuf },
    /// Those of all users.
    All { _announced: Announced },
}

/// What a process was told last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    cpus: u32,
    why: Why,
    milli: u32,
    at: Instant,
}

impl Leader {
    /// One of many candidates: those who wait for a program in `hearth exec`. Without this folder, or if
    /// it is not this user's alone, it never leads.
    pub fn new(folder: &Path) -> Self {
        Self::under(folder, announcement())
    }

    /// The daemon's: there is one, so it leads. Where somebody tells `times`, it has no need to read all of
    /// `/proc`.
    ///
    /// # Errors
    /// If it cannot say so to others.
    pub fn for_all(times: Times) -> Result<Self, hearth_host::Error> {
        let leader = Self::with(Scope::All { _announced: Announced::at(announcement())? }, None);
        Ok(Self { observer: Observer::with_times(times), ..leader })
    }

    /// The same where the daemon announces itself here.
    pub fn under(folder: &Path, daemon: PathBuf) -> Self {
        let folder = Folder::open(folder).map(Arc::new);
        let lock = folder.as_ref().and_then(|folder| folder.lock_file("leader"));
        Self::with(Scope::One { folder: folder.filter(|_| lock.is_some()), daemon }, lock)
    }

    fn with(scope: Scope, lock: Option<OwnedFd>) -> Self {
        Self {
            scope,
            lock,
            leads: false,
            stepped_at: None,
            news: None,
            has_news: false,
            is_alone: false,
            between: Paced::new(NEWS_EVERY, SHARE),
            observer: Observer::new(),
            steady: Steady::default(),
            said: HashMap::new(),
        }
    }

    /// Tells all followers their numbers, if it is time and nobody else does. To be called again after
    /// [`Self::wait`].
    pub fn step(&mut self, now: Instant) {
        let is_due = self.stepped_at.is_none_or(|at| now >= at + self.pace() - EARLY);
        let is_between = self.has_news && self.between.left(now).is_zero();
        if !is_due && !is_between {
            return;
        }
        self.has_news = false;
        if is_due {
            self.stepped_at = Some(now);
        }
        self.leads = self.scope.is_free() && self.lock.as_ref().is_none_or(takes);
        if !self.leads {
            self.news = None;
            return;
        }
        if self.news.is_none() {
            self.news = self.scope.news();
        }
        let begin = Instant::now();
        self.say(now, is_due);
        self.between.took(now, begin.elapsed());
    }

    /// Waits until the next step is to be made, or `other` is readable.
    pub fn wait(&mut self, other: BorrowedFd<'_>) {
        let now = Instant::now();
        let pace = self.pace();
        let left = self.stepped_at.map_or(pace, |at| (at + pace).saturating_duration_since(now));
        let left = if self.has_news { left.min(self.between.left(now)) } else { left };
        let news = self.news.iter().map(News::fd);
        wait(&news.chain([other]).collect::<Vec<_>>(), left);
        self.has_news |= self.news.as_ref().is_some_and(News::any);
    }

    /// From one step to the next.
    fn pace(&self) -> Duration {
        let tells_all = matches!(self.scope, Scope::All { .. });
        let usual = if self.is_alone && tells_all { QUIET_STEP } else { STEP };
        // Anybody may put folders there, so that a step takes as long as they like.
        usual.max(self.between.cost.div_f64(SHARE))
    }

    fn say(&mut self, now: Instant, is_step: bool) {
        if let Some(news) = &self.news {
            news.watch_all();
        }
        let mut found = self.scope.found();
        self.is_alone = found.is_empty();
        // The others keep their hands off.
        found.retain(|(_, found)| found.page.state == 0);
        let following: Vec<Following> = found.iter().map(|(_, found)| found.following()).collect();
        self.said.retain(|pid, _| found.iter().any(|(_, found)| found.pid == *pid));
        if found.is_empty() {
            return;
        }
        let numbers = if is_step {
            numbers(self.observer.look(now, &following), |look| self.steady.step(look))
        } else {
            numbers(self.observer.recall(now, &following), |look| self.steady.between(look))
        };
        for ((folder, found), (number, limits)) in found.into_iter().zip(numbers) {
            let milli = (number.share * 1000.0).round() as u32;
            let said = Said { cpus: number.cpus, why: limits.why(&number), milli, at: now };
            if self.said.get(&found.pid).is_none_or(|before| before.differs(&said))
                && folder.tell(found.pid, said.cpus, said.why, said.milli, now_ns())
            {
                self.said.insert(found.pid, said);
            }
        }
    }

    /// Whether this one leads, as of the last step.
    pub fn leads(&self) -> bool {
        self.leads
    }

    /// How many programs it tells a number.
    pub fn followers(&self) -> usize {
        self.said.len()
    }

    /// How it looks at the machine.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }
}

/// The daemon's word that it leads, while this is there: its process, in a file that others only read. Not a
/// lock, which any of them could take.
#[derive(Debug)]
struct Announced(PathBuf);

impl Announced {
    fn at(path: PathBuf) -> Result<Self, hearth_host::Error> {
        let own = Thread::now(std::process::id() as i32).unwrap_or(Thread { tid: 0, start: 0 });
        let text = format!("{} {}\n", own.tid, own.start);
        // Whole or not at all: others may look at any time.
        let fresh = path.with_extension("new");
        fs::write(&fresh, text)
            .and_then(|()| fs::rename(&fresh, &path))
            .map_err(hearth_host::Error::file(&path))?;
        Ok(Self(path))
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Whether the process that a file names is there.
fn is_announced(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut numbers = text.split_whitespace();
    let (Some(Ok(tid)), Some(Ok(start))) = (numbers.next().map(str::parse), numbers.next().map(str::parse))
    else {
        return false;
    };
    Thread { tid, start }.is_there()
}

/// Whether this process has the lock, or gets it.
fn takes(lock: &OwnedFd) -> bool {
    flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok()
}

impl Scope {
    /// Whether no daemon leads here.
    fn is_free(&self) -> bool {
        match self {
            Self::All { .. } => true,
            Self::One { folder, daemon } => folder.is_some() && !is_announced(daemon),
        }
    }

    fn news(&self) -> Option<News> {
        match self {
            Self::All { .. } => News::of_all(),
            Self::One { folder, .. } => folder.as_ref().and_then(|folder| News::of_folder(folder)),
        }
    }

    /// The pages of processes, with the folder of each.
    fn found(&self) -> Vec<(Arc<Folder>, Found)> {
        let folders = match self {
            Self::One { folder, .. } => folder.iter().cloned().collect(),
            Self::All { .. } => all_folders().into_iter().map(Arc::new).collect::<Vec<_>>(),
        };
        folders
            .iter()
            .flat_map(|folder| folder.pages().into_iter().map(|found| (Arc::clone(folder), found)))
            .collect()
    }
}

impl Said {
    /// Whether it is to be said again: it is another, or the last word grows old. Thousandths alone are
    /// no reason.
    fn differs(&self, other: &Self) -> bool {
        (self.cpus, self.why) != (other.cpus, other.why) || other.at >= self.at + RENEW
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::pages::SHARED_MEMORY;
    use hearth_hints::page::Page;
    use std::os::fd::AsFd;
    use std::process::Command;

    #[test]
    fn steps_that_take_long_are_rare() {
        let place = tempfile::tempdir().unwrap();
        let announced = Announced::at(place.path().join("leader")).unwrap();
        let mut leader = Leader::with(Scope::All { _announced: announced }, None);
        for (cost, pace) in
            [(Duration::from_millis(1), STEP), (Duration::from_secs(1), Duration::from_secs(10))]
        {
            leader.between.took(Instant::now(), cost);
            assert_eq!(leader.pace(), pace);
        }
    }

    #[test]
    fn a_newcomer_is_told_at_once_by_a_daemon_that_tells_nobody() {
        let place = tempfile::tempdir().unwrap();
        let announced = Announced::at(place.path().join("leader")).unwrap();
        let mut leader = Leader::with(Scope::All { _announced: announced }, None);
        let begin = Instant::now();
        leader.step(begin);
        // Other programs of this machine may be told something just now.
        assert_eq!(leader.pace(), if leader.is_alone { QUIET_STEP } else { STEP });

        let folder = format!("hearth-{}", rustix::process::geteuid().as_raw());
        let folder = Path::new(SHARED_MEMORY).join(folder);
        Folder::open(&folder).unwrap();
        let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
        let Thread { tid, start } = Thread::now(sleeper.id() as i32).unwrap();
        let page = folder.join(tid.to_string());
        fs::write(page.with_extension("new"), Page::begun(tid as u32, start)).unwrap();
        fs::rename(page.with_extension("new"), &page).unwrap();
        let (never, _other_end) = std::io::pipe().unwrap();
        let mut now = begin;
        while !leader.said.contains_key(&tid) && now < begin + STEP / 2 {
            leader.wait(never.as_fd());
            leader.step(now);
            now += NEWS_EVERY;
        }
        let (cpus, pace) =
            (Page::read(&fs::read(&page).unwrap().try_into().unwrap()).unwrap().cpus, leader.pace());
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        fs::remove_file(&page).unwrap();
        assert!(cpus > 0, "it has not heard of it");
        assert_eq!(pace, STEP);
    }
}
