//! What the library says to a daemon about its threads' words, and what it does upon the answer.

#![allow(clippy::unwrap_used)]

mod common;

use common::Run;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

/// Answers one registration, and returns the thread and the address that it is of.
fn answer_registration(daemon: &UnixListener) -> (u32, u64) {
    let (mut client, _) = daemon.accept().unwrap();
    let mut said = [0; 16];
    client.read_exact(&mut said).unwrap();
    client.write_all(&0_i32.to_ne_bytes()).unwrap();
    let word = |at: usize| u32::from_ne_bytes(said[at..at + 4].try_into().unwrap());
    assert_eq!(word(0), 1, "the version");
    (word(4), u64::from_ne_bytes(said[8..].try_into().unwrap()))
}

#[test]
fn a_daemon_is_told_where_the_word_is_and_another_that_comes_in_its_place_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words");
    let daemon = UnixListener::bind(&path).unwrap();
    let mut run = Run::begin_with("HEARTH_WORDS", path.to_str().unwrap());
    run.order("enter 77");
    let (thread, address) = answer_registration(&daemon);
    assert_eq!((thread, run.ask("fragment")), (run.child.id(), 77));
    let memory = fs::File::open(format!("/proc/{}/mem", run.child.id())).unwrap();
    let mut word = [0; 8];
    memory.read_exact_at(&mut word, address).unwrap();
    assert_eq!(u64::from_ne_bytes(word), 77);
    run.order("leave");
    assert_eq!(run.ask("fragment"), 0);
    memory.read_exact_at(&mut word, address).unwrap();
    assert_eq!(u64::from_ne_bytes(word), 0);

    drop(daemon);
    fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    other.set_nonblocking(true).unwrap();
    run.until("the other daemon was not told", |run| {
        run.order("work 1 3000");
        run.order("fragment");
        let begin = Instant::now();
        let told = loop {
            match other.accept() {
                Ok((mut client, _)) => break client.write_all(&1_i32.to_ne_bytes()).is_ok(),
                Err(_) if begin.elapsed() > Duration::from_millis(20) => break false,
                Err(_) => std::thread::yield_now(),
            }
        };
        run.answer_to("fragment");
        told
    });
    run.end();
}

/// A daemon at a path that programs are told of.
struct Daemon {
    folder: tempfile::TempDir,
    socket: UnixListener,
}

impl Daemon {
    fn begin() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixListener::bind(folder.path().join("words")).unwrap();
        Self { folder, socket }
    }

    fn run(&self) -> Run {
        Run::begin_with("HEARTH_WORDS", self.folder.path().join("words").to_str().unwrap())
    }

    /// A thread says its first word to it.
    fn entered() -> (Self, Run) {
        let daemon = Self::begin();
        let mut run = daemon.run();
        run.order("enter 1");
        (daemon, run)
    }

    fn end(self) {
        fs::remove_file(self.folder.path().join("words")).unwrap();
    }
}

fn can_move() -> bool {
    Run::that_can_move().map(Run::end).is_some()
}

/// Has the thread enter away from the fragment's home: whether the home is then where it found itself, as it is
/// if a scheduler has moved it. Else it is where the library has put it, whether or not a move pays now.
fn home_follows(run: &mut Run) -> bool {
    let (home, other) = run.home_and_other();
    run.order(&format!("goto {other}"));
    run.order("enter 1");
    let home_now = run.ask("home 1");
    run.order("leave");
    assert!(home_now == home || home_now == other, "{home_now} is neither {home} nor {other}");
    home_now == other
}

#[test]
fn a_daemon_that_does_not_know_the_version_or_answers_nonsense_is_as_none() {
    if !can_move() {
        return;
    }
    let answers: [&[u8]; 4] = [&93_i32.to_ne_bytes(), &(-1_i32).to_ne_bytes(), &[0, 0], &[]];
    for answer in answers {
        let (daemon, mut run) = Daemon::entered();
        let (mut client, _) = daemon.socket.accept().unwrap();
        client.write_all(answer).unwrap();
        // It may have gone away in the meantime.
        let _ = client.shutdown(std::net::Shutdown::Write);
        run.order("leave");
        run.until("homes follow threads", |run| !home_follows(run));
        run.end();
    }
}

#[test]
fn a_daemon_that_says_nothing_is_not_waited_for() {
    let (daemon, mut run) = Daemon::entered();
    let silent = daemon.socket.accept().unwrap();
    assert_eq!(run.ask("fragment"), 1);
    drop(silent);
    run.end();
}

#[test]
fn a_daemon_that_was_too_busy_to_answer_is_asked_again() {
    let (daemon, mut run) = Daemon::entered();
    let _too_busy = daemon.socket.accept().unwrap();
    run.order("leave");
    daemon.socket.set_nonblocking(true).unwrap();
    let mut asked = None;
    run.until("nobody asks again", |run| {
        run.order("work 1 3000");
        // Orders do not pile up.
        run.ask("fragment");
        asked = daemon.socket.accept().ok();
        asked.is_some()
    });
    run.end();
}

#[test]
fn a_program_whose_daemon_is_gone_places_its_threads_itself() {
    if !can_move() {
        return;
    }
    let (daemon, mut run) = Daemon::entered();
    answer_registration(&daemon.socket);
    run.order("leave");
    run.until("the home is where the scheduler has put the thread", home_follows);
    daemon.end();
    run.until("homes follow threads", |run| {
        run.order("work 1 3000");
        !home_follows(run)
    });
    run.end();
}

#[test]
fn a_child_of_fork_tells_the_daemon_of_its_own_word() {
    let (daemon, mut run) = Daemon::entered();
    let (parent, _) = answer_registration(&daemon.socket);
    run.order("leave");
    run.in_child(|run| {
        run.order("enter 2");
        let (child, _) = answer_registration(&daemon.socket);
        assert_eq!((child == parent, run.ask("fragment")), (false, 2));
    });
    run.end();
}
