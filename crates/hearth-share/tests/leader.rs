//! Who leads, what programs are told, and what a folder of pages may hold without harm.

#![allow(clippy::unwrap_used)]

use hearth_hints::page::{Page, Why};
use hearth_host::task::Thread;
use hearth_share::Leader;
use hearth_share::leader::STEP;
use hearth_share::machine::Process;
use hearth_share::pages::Folder;
use proptest::prelude::*;
use rustix::fs::{Mode, mknodat};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A folder of pages, with a process that sleeps.
struct Setting {
    folder: tempfile::TempDir,
    sleeper: Child,
}

impl Setting {
    fn new() -> Self {
        let own_alone = fs::Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().permissions(own_alone).tempdir().unwrap();
        Self { folder, sleeper: Command::new("sleep").arg("1000").spawn().unwrap() }
    }

    fn leader(&self) -> Leader {
        Leader::under(self.folder.path(), self.announcement())
    }

    fn announcement(&self) -> PathBuf {
        self.folder.path().join("daemon-lock")
    }

    fn path(&self, name: impl ToString) -> PathBuf {
        self.folder.path().join(name.to_string())
    }

    fn pid(&self) -> u32 {
        self.sleeper.id()
    }

    /// A page as the sleeper would make it.
    fn page(&self) -> Vec<u8> {
        let start = Process::now(self.pid() as i32).unwrap().start;
        Page::begun(self.pid(), start).to_vec()
    }

    fn write(&self, page: &[u8]) {
        fs::write(self.path(self.pid()), page).unwrap();
    }

    fn read(&self) -> Page {
        Page::read(&fs::read(self.path(self.pid())).unwrap().try_into().unwrap()).unwrap()
    }

    /// Steps until the page says something else than nothing.
    fn told(&self, leader: &mut Leader) -> Page {
        step_until(leader, || self.read().cpus > 0);
        self.read()
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        self.sleeper.kill().unwrap();
        self.sleeper.wait().unwrap();
    }
}

/// Steps as often as a leader does, for 30 s at most.
fn step_until(leader: &mut Leader, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    let mut now = begin;
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(30), "it never came to be so");
        leader.step(now);
        now += Duration::from_millis(100);
    }
}

fn steps(leader: &mut Leader, steps: u32) {
    (0..steps).for_each(|step| leader.step(Instant::now() + step * Duration::from_millis(1100)));
}

#[test]
fn a_program_is_told_its_number_and_why() {
    let setting = Setting::new();
    let mut page = setting.page();
    page[12] = 1;
    setting.write(&page);
    let told = setting.told(&mut setting.leader());
    let cpus = hearth_share::machine::online().len();
    assert_eq!(told.cpus, 1);
    assert_eq!(Why::of(told.why), Some(if cpus > 1 { Why::Want } else { Why::Machine }));
    assert!(told.told_ns > 0 && told.milli <= 1000);
    assert_eq!((told.pid, told.want, told.runtime), (setting.pid(), 1, 0), "what is the program's stays");
}

#[test]
fn one_leads_at_a_time_and_another_follows_it() {
    let setting = Setting::new();
    setting.write(&setting.page());
    let (mut first, mut second) = (setting.leader(), setting.leader());
    setting.told(&mut first);
    setting.write(&setting.page());
    steps(&mut second, 3);
    assert!(first.leads() && !second.leads());
    assert_eq!(setting.read().cpus, 0);
    drop(first);
    setting.told(&mut second);
}

#[test]
fn a_newcomer_is_told_before_the_next_step() {
    let setting = Setting::new();
    let mut leader = setting.leader();
    let begin = Instant::now();
    leader.step(begin);
    assert!(leader.leads());
    setting.write(&setting.page());
    leader.step(begin + STEP / 2);
    assert_eq!(setting.read().cpus, 0, "it has not heard of it");
    Folder::open(setting.folder.path()).unwrap().tell_leader();
    let (never, _other_end) = std::io::pipe().unwrap();
    leader.wait(never.as_fd());
    leader.step(begin + STEP / 2);
    assert!(setting.read().cpus > 0);
}

#[test]
fn a_pipe_that_is_none_keeps_nobody_from_leading() {
    let setting = Setting::new();
    let aim = setting.path("aim");
    fs::write(&aim, "mine").unwrap();
    symlink(&aim, setting.path("news")).unwrap();
    setting.write(&setting.page());
    Folder::open(setting.folder.path()).unwrap().tell_leader();
    setting.told(&mut setting.leader());
    assert_eq!(fs::read(&aim).unwrap(), b"mine");
}

#[test]
fn nobody_leads_beside_the_daemon() {
    let setting = Setting::new();
    setting.write(&setting.page());
    let mut daemon = Command::new("sleep").arg("600").spawn().unwrap();
    let Thread { tid, start } = Thread::now(daemon.id() as i32).unwrap();
    fs::write(setting.announcement(), format!("{tid} {start}\n")).unwrap();
    let mut leader = setting.leader();
    steps(&mut leader, 3);
    assert!(!leader.leads());
    assert_eq!(setting.read().cpus, 0);
    // It was killed, and has left its word there.
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    setting.told(&mut leader);
}

#[test]
fn pages_of_processes_that_are_gone_are_removed() {
    let setting = Setting::new();
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    fs::write(setting.path(child.id()), setting.page()).unwrap();
    fs::write(setting.path(format!(".{}", child.id())), "").unwrap();
    let mut earlier = setting.page();
    earlier[16] ^= 1;
    setting.write(&earlier);
    fs::write(setting.path("note"), "mine").unwrap();
    assert_eq!(Folder::open(setting.folder.path()).unwrap().pages(), []);
    let left: Vec<_> =
        fs::read_dir(setting.folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["note"]);
}

#[test]
fn a_process_of_another_user_is_told_nothing() {
    let setting = Setting::new();
    let Some(init) = Process::now(1).filter(|_| !rustix::process::geteuid().is_root()) else {
        println!("skipped: as root, the first process is one's own");
        return;
    };
    fs::write(setting.path(1), Page::begun(1, init.start)).unwrap();
    assert_eq!(Folder::open(setting.folder.path()).unwrap().pages(), []);
}

#[test]
fn what_is_no_plain_file_of_ones_own_is_left_alone() {
    let setting = Setting::new();
    let page = setting.page();
    let aim = setting.path("aim");
    let name = setting.path(setting.pid());
    let unharmed = |what: &str| {
        steps(&mut setting.leader(), 2);
        assert_eq!(fs::read(&aim).unwrap(), page, "{what}");
    };
    fs::write(&aim, &page).unwrap();
    symlink(&aim, &name).unwrap();
    unharmed("a link");
    fs::remove_file(&name).unwrap();
    fs::hard_link(&aim, &name).unwrap();
    unharmed("a second name");
    fs::remove_file(&name).unwrap();
    fs::create_dir(&name).unwrap();
    unharmed("a folder");
    fs::remove_dir(&name).unwrap();
    mknodat(rustix::fs::CWD, &name, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    unharmed("a pipe");
}

#[test]
fn a_page_that_is_cut_short_is_told_nothing_and_not_made_longer() {
    let setting = Setting::new();
    setting.write(&setting.page());
    let mut leader = setting.leader();
    setting.told(&mut leader);
    for length in [63, 8, 0] {
        setting.write(&setting.page()[..length]);
        steps(&mut leader, 3);
        assert_eq!(fs::metadata(setting.path(setting.pid())).unwrap().len(), length as u64);
    }
}

#[test]
fn a_folder_that_others_may_enter_is_no_folder_of_pages() {
    let setting = Setting::new();
    fs::set_permissions(setting.folder.path(), fs::Permissions::from_mode(0o750)).unwrap();
    assert!(Folder::open(setting.folder.path()).is_none());
    let link = setting.path("link");
    symlink(Path::new("/tmp"), &link).unwrap();
    assert!(Folder::open(&link).is_none());
    let mut leader = setting.leader();
    steps(&mut leader, 2);
    assert!(!leader.leads());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a process writes into its page, it is told a number that the machine has, or nothing.
    #[test]
    fn any_page_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..80), from in 0_usize..64) {
        let setting = Setting::new();
        let mut page = setting.page();
        page.resize(page.len().max(from + bytes.len()), 0);
        page[from..from + bytes.len()].copy_from_slice(&bytes);
        setting.write(&page);
        let mut leader = setting.leader();
        steps(&mut leader, 3);
        let Ok(file) = fs::File::open(setting.path(setting.pid())) else { return Ok(()) };
        let mut after = vec![0; page.len()];
        file.read_exact_at(&mut after, 0).unwrap();
        let is_leaders = |at: usize| (24..40).contains(&at) || (48..52).contains(&at);
        for at in (0..page.len()).filter(|at| !is_leaders(*at)) {
            prop_assert_eq!(after[at], page[at]);
        }
        if after[24..40] != page[24..40] {
            let told = Page::read(after[..64].try_into().unwrap()).unwrap();
            prop_assert!((1..=hearth_share::machine::online().len() as u32).contains(&told.cpus));
        }
    }
}
