//! What a process makes of its page and of a leader's word, seen from outside: each test runs a
//! child of its own, for the page is the process's.

#![allow(clippy::unwrap_used)]

mod common;

use hearth_hints::page::{Page, Why};
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The program; built once.
fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| common::build("page", "address,undefined"))
}

/// A run of it, whose page is in a folder of its own.
struct Run {
    program: common::Run,
    folder: tempfile::TempDir,
}

impl Run {
    fn begin() -> Self {
        Self::begin_in(0o700)
    }

    /// A program whose pages' folder has these permissions.
    fn begin_in(mode: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        let program = common::Run::of(Command::new(program()).env("HEARTH_DIR", folder.path()));
        Self { program, folder }
    }

    fn order(&mut self, order: &str) {
        self.program.order(order);
    }

    fn ask(&mut self, order: &str) -> i64 {
        self.program.ask(order)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(self.program.child.id().to_string())
    }

    fn file(&self) -> fs::File {
        fs::OpenOptions::new().read(true).write(true).open(self.path()).unwrap()
    }

    fn page(&self) -> Option<Page> {
        let mut bytes = [0; Page::SIZE];
        self.file().read_exact_at(&mut bytes, 0).unwrap();
        Page::read(&bytes)
    }

    fn say(&self, cpus: u32, told_ns: u64) {
        self.file().write_all_at(&Page::said(cpus, Why::Share, told_ns), Page::SAID).unwrap();
    }

    fn end(self) {
        let path = self.path();
        self.program.end();
        assert!(!path.exists(), "a page ends with its process");
    }
}

/// `CLOCK_MONOTONIC` as far as `/proc/uptime` has it.
fn now_ns() -> u64 {
    let text = fs::read_to_string("/proc/uptime").unwrap();
    (text.split(' ').next().unwrap().parse::<f64>().unwrap() * 1e9) as u64
}

fn own_limit() -> i64 {
    std::thread::available_parallelism().unwrap().get() as i64
}

#[test]
fn without_a_leader_the_number_is_that_of_mask_and_quota() {
    let mut run = Run::begin();
    let limit = run.ask("cpus");
    assert!((1..=own_limit() + 1).contains(&limit), "{limit} of {}", own_limit());
    let page = run.page().unwrap();
    assert_eq!((page.pid, page.cpus, page.want), (run.program.child.id(), 0, 0));
    assert_eq!(run.ask("want 3"), 0);
    assert_eq!(run.page().unwrap().want, 3);
    assert_eq!(run.ask("want -1"), 0);
    assert_eq!(run.page().unwrap().want, 0);
    run.end();
}

#[test]
fn a_leaders_word_is_taken_and_an_old_one_is_not() {
    let mut run = Run::begin();
    let limit = run.ask("cpus");
    run.say(77, now_ns());
    assert_eq!(run.ask("cpus"), 77);
    run.say(77, now_ns() - 3_000_000_000);
    assert_eq!(run.ask("cpus"), limit);
    run.say(77, u64::MAX / 2);
    assert_eq!(run.ask("cpus"), limit, "nor is one of the future");
    run.end();
}

#[test]
fn a_wait_ends_with_the_change_and_with_its_time() {
    let mut run = Run::begin();
    let limit = run.ask("cpus");
    assert_eq!(run.ask(&format!("wait {limit} 0")), limit);
    assert_eq!(run.ask(&format!("wait {} -1", limit + 1)), limit);
    run.order(&format!("wait {limit} -1"));
    run.say(78, now_ns());
    assert_eq!(run.program.answer_to("wait"), 78);
    run.end();
}

#[test]
fn a_wait_sees_that_the_leader_is_gone() {
    let mut run = Run::begin();
    let limit = run.ask("cpus");
    run.say(79, now_ns());
    assert_eq!(run.ask("wait 79 60000"), limit);
    run.end();
}

#[test]
fn the_descriptor_is_readable_after_each_word() {
    let mut run = Run::begin();
    assert_eq!(run.ask("poll 0"), 0);
    for cpus in [3, 4] {
        run.say(cpus, now_ns());
        assert_eq!(run.ask("poll 60000"), 1);
        assert_eq!(run.ask("poll 0"), 0);
    }
    run.end();
}

#[test]
fn a_child_has_a_page_of_its_own() {
    let mut run = Run::begin();
    run.ask("cpus");
    run.say(80, now_ns());
    run.order("fork");
    let [cpus, pid] = [(); 2].map(|()| run.program.answer_to("fork"));
    assert_ne!(cpus, 80, "nobody told the child");
    assert!(!run.folder.path().join(pid.to_string()).exists(), "it took its page with it");
    assert_eq!(run.ask("cpus"), 80);
    run.end();
}

#[test]
fn a_program_does_not_inherit_what_the_one_before_wanted() {
    let mut run = Run::begin();
    run.ask("want 5");
    let before = run.page().unwrap();
    run.order("again");
    run.ask("cpus");
    let after = run.page().unwrap();
    assert_eq!((after.pid, after.start_time, after.want), (before.pid, before.start_time, 0));
    run.end();
}

#[test]
fn a_folder_that_others_may_enter_is_refused() {
    let mut run = Run::begin_in(0o755);
    assert!(run.ask("cpus") >= 1);
    assert_eq!(run.ask("want 2"), -1);
    assert_eq!(run.ask("poll 0"), -1);
    assert!(fs::read_dir(run.folder.path()).unwrap().next().is_none());
    run.end();
}

#[test]
fn a_link_in_place_of_a_page_is_replaced_and_not_followed() {
    let mut run = Run::begin();
    let aim = run.folder.path().join("aim");
    fs::write(&aim, [7; 64]).unwrap();
    std::os::unix::fs::symlink(&aim, run.path()).unwrap();
    run.ask("want 2");
    assert_eq!(run.page().unwrap().want, 2);
    assert_eq!(fs::read(&aim).unwrap(), [7; 64]);
    run.end();
}

#[test]
fn the_number_may_be_asked_from_rust() {
    let cpus = hearth_hints::cpus();
    let begin = Instant::now();
    assert_eq!(hearth_hints::wait(cpus + 1, None), cpus);
    assert!(begin.elapsed() < Duration::from_secs(60));
}

proptest! {
    #[test]
    fn only_what_begins_as_a_page_is_one(bytes: [u8; 32], rest: [u8; 32], is_page: bool) {
        let mut whole = [0; Page::SIZE];
        whole[..32].copy_from_slice(&bytes);
        whole[32..].copy_from_slice(&rest);
        if is_page {
            whole[..4].copy_from_slice(&hearth_hints::page::MAGIC.to_ne_bytes());
            whole[4..8].copy_from_slice(&hearth_hints::page::VERSION.to_ne_bytes());
        }
        prop_assert_eq!(Page::read(&whole).is_some(), is_page);
    }

    #[test]
    fn a_word_is_read_as_it_was_written(cpus: u32, told_ns: u64) {
        let mut whole = [0; Page::SIZE];
        whole[..4].copy_from_slice(&hearth_hints::page::MAGIC.to_ne_bytes());
        whole[4] = 1;
        whole[24..40].copy_from_slice(&Page::said(cpus, Why::Quota, told_ns));
        let page = Page::read(&whole);
        prop_assert_eq!(page.map(|page| (page.cpus, page.why, page.told_ns)), Some((cpus, 2, told_ns)));
    }
}
