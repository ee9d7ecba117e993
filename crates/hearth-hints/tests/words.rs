//! What the library says to a daemon about its threads' words, and what it does upon the answer.

#![allow(clippy::unwrap_used)]

mod common;

use common::Run;
use std::fs;
use std::io::{BufRead, Read, Write};
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
        let mut line = String::new();
        run.answers.read_line(&mut line).unwrap();
        told
    });
    run.end();
}
