//! What the library says to a daemon about its threads' words, and what it does upon the answer.

#![allow(clippy::unwrap_used)]

mod common;

use common::Run;
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// A thread says its first word, and waits for no answer: the thread and the address that it is of.
fn announced(announcements: &UnixDatagram) -> (u32, u64) {
    let mut said = [0; 17];
    assert_eq!(announcements.recv(&mut said).unwrap(), 16);
    let word = |at: usize| u32::from_ne_bytes(said[at..at + 4].try_into().unwrap());
    assert_eq!(word(0), 1, "the version");
    (word(4), u64::from_ne_bytes(said[8..16].try_into().unwrap()))
}

/// Whether it has read the answer: it may have given up in the meantime, and what it leaves unread is an error here.
fn is_told(mut client: UnixStream, answer: &[u8]) -> bool {
    let mut question = Vec::new();
    client.write_all(answer).is_ok()
        && client.shutdown(Shutdown::Write).is_ok()
        && client.read_to_end(&mut question).is_ok()
}

/// Has the thread work until it asks the daemon, which answers this.
fn answer_question(daemon: &UnixListener, run: &mut Run, answer: &[u8]) {
    daemon.set_nonblocking(true).unwrap();
    run.until("the daemon is not asked", |run| {
        run.order("work 1 3000");
        run.order("fragment");
        let begin = Instant::now();
        let told = loop {
            match daemon.accept() {
                Ok((client, _)) => break is_told(client, answer),
                Err(_) if begin.elapsed() > Duration::from_millis(20) => break false,
                Err(_) => std::thread::yield_now(),
            }
        };
        run.answer_to("fragment");
        told
    });
}

const YES: [u8; 4] = 0_i32.to_ne_bytes();

#[test]
fn a_daemon_is_told_where_the_word_is_and_another_that_comes_in_its_place_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words");
    let daemon = UnixListener::bind(&path).unwrap();
    let announcements = UnixDatagram::bind(folder.path().join("words-announced")).unwrap();
    let mut run = Run::begin_with("HEARTH_WORDS", path.to_str().unwrap());
    run.order("enter 77");
    let (thread, address) = announced(&announcements);
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
    answer_question(&other, &mut run, &1_i32.to_ne_bytes());
    run.end();
}

/// A daemon at a path that programs are told of.
struct Daemon {
    folder: tempfile::TempDir,
    socket: UnixListener,
    announcements: UnixDatagram,
    /// The first thread, and where its word is.
    announced: (u32, u64),
}

impl Daemon {
    fn begin() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixListener::bind(folder.path().join("words")).unwrap();
        let announcements = UnixDatagram::bind(folder.path().join("words-announced")).unwrap();
        Self { folder, socket, announcements, announced: (0, 0) }
    }

    fn run(&self) -> Run {
        Run::begin_with("HEARTH_WORDS", self.folder.path().join("words").to_str().unwrap())
    }

    /// A thread says its first word to it.
    fn entered() -> (Self, Run) {
        let mut daemon = Self::begin();
        let mut run = daemon.run();
        run.order("enter 1");
        daemon.announced = announced(&daemon.announcements);
        (daemon, run)
    }

    /// The same, and it has left the fragment.
    fn left() -> (Self, Run) {
        let (daemon, mut run) = Self::entered();
        run.order("leave");
        (daemon, run)
    }

    /// The same, where a thread may run on two CPUs. It is held at the fragment's home: had the kernel taken it
    /// elsewhere, the library would have tried a move, and then would try a stay.
    fn left_by_who_can_move() -> Option<(Self, Run)> {
        can_move().then(|| {
            let (daemon, mut run) = Self::left();
            let (home, _) = run.home_and_other();
            run.order(&format!("bind {home}"));
            (daemon, run)
        })
    }

    fn end(self) {
        fs::remove_file(self.folder.path().join("words")).unwrap();
    }
}

/// Has the thread work until it asks the daemon, which is too busy to answer in time.
fn asked(daemon: &Daemon, run: &mut Run) -> UnixStream {
    let mut asked = None;
    run.until("nobody asks", |run| {
        run.order("work 1 3000");
        // Orders do not pile up.
        run.ask("fragment");
        asked = daemon.socket.accept().ok();
        asked.is_some()
    });
    asked.unwrap().0
}

fn can_move() -> bool {
    Run::that_can_move().map(Run::end).is_some()
}

/// Has the thread enter away from the fragment's home, where it is held: whether the home is then there, as it is if
/// a scheduler has moved the thread. Else it is where the library has put it.
fn home_follows(run: &mut Run) -> bool {
    let (home, other) = run.home_and_other();
    run.order(&format!("bind {other}"));
    run.order("enter 1");
    let home_now = run.ask("home 1");
    run.order("leave");
    run.order(&format!("bind {home_now}"));
    assert!(home_now == home || home_now == other, "{home_now} is neither {home} nor {other}");
    home_now == other
}

#[test]
fn a_daemon_that_does_not_know_the_version_or_answers_nonsense_is_as_none() {
    let answers: [&[u8]; 4] = [&93_i32.to_ne_bytes(), &(-1_i32).to_ne_bytes(), &[0, 0], &[]];
    for answer in answers {
        let Some((daemon, mut run)) = Daemon::left_by_who_can_move() else { return };
        answer_question(&daemon.socket, &mut run, answer);
        run.until("homes follow threads", |run| !home_follows(run));
        run.end();
    }
}

#[test]
fn a_daemon_that_says_nothing_is_not_waited_for() {
    let (daemon, mut run) = Daemon::entered();
    assert_eq!(run.ask("fragment"), 1);
    run.order("leave");
    for _ in 0..30 {
        run.order("work 1 3000");
        assert_eq!(run.ask("fragment"), 0);
    }
    drop(daemon);
    run.end();
}

#[test]
fn who_has_not_been_answered_yet_stays_where_it_is() {
    let Some((_daemon, mut run)) = Daemon::left_by_who_can_move() else { return };
    let (_, other) = run.home_and_other();
    for _ in 0..10 {
        run.order(&format!("goto {other}"));
        run.order("enter 1");
        run.order("leave");
    }
    assert_eq!(run.ask("count moved"), 0);
    assert!(run.ask("count stayed") > 0);
    run.end();
}

#[test]
fn a_daemon_that_was_too_busy_to_answer_is_asked_again() {
    let (daemon, mut run) = Daemon::left();
    daemon.socket.set_nonblocking(true).unwrap();
    let _too_busy = asked(&daemon, &mut run);
    asked(&daemon, &mut run);
    run.end();
}

#[test]
fn a_program_whose_daemon_is_gone_before_it_was_asked_places_its_threads_itself() {
    let Some((daemon, mut run)) = Daemon::left_by_who_can_move() else { return };
    daemon.end();
    // It looks for the daemon ten times a second, and has not been within fragments for long enough to ask.
    for _ in 0..3 {
        run.order("work 1 1000");
        assert_eq!(run.ask("fragment"), 0);
        std::thread::sleep(Duration::from_millis(120));
    }
    run.until("nobody moves", |run| {
        run.order("work 1 3000");
        let (_, other) = run.home_and_other();
        run.order(&format!("goto {other}"));
        run.order("enter 1");
        run.order("leave");
        run.ask("count moved") > 0
    });
    run.end();
}

#[test]
fn a_program_whose_daemon_is_gone_places_its_threads_itself() {
    let Some((daemon, mut run)) = Daemon::left_by_who_can_move() else { return };
    answer_question(&daemon.socket, &mut run, &YES);
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
    let (parent, _) = daemon.announced;
    run.order("leave");
    run.in_child(|run| {
        run.order("enter 2");
        let (child, _) = announced(&daemon.announcements);
        assert_eq!((child == parent, run.ask("fragment")), (false, 2));
    });
    run.end();
}
