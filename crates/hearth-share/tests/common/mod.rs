//! Programs that follow a number which the test says.

#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::unwrap_used, reason = "tests")]

use hearth_hints::page::{Page, Why};
use hearth_host::clock::now_ns;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const LIBRARY: &str = concat!(env!("OUT_DIR"), "/libhearth-follow.so");
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Compiles a program of `tests/programs`; none, with the reason printed, where something is missing.
pub fn compile(source: &str, compiler: &[&str], options: &[&str]) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).arg("-O1").arg(source).arg("-o").arg(&program).args(options);
    let failure = match command.output() {
        Ok(output) if output.status.success() => return Some((folder, program)),
        Ok(output) => String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("").to_owned(),
        Err(error) => error.to_string(),
    };
    println!("skipped: {} does not compile it: {failure}", compiler.join(" "));
    None
}

/// Says a number to every page of a folder, all the time.
pub struct Teller {
    pub folder: TempDir,
    cpus: Arc<AtomicU32>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Teller {
    pub fn new(cpus: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let (cpus, over) = (Arc::new(AtomicU32::new(cpus)), Arc::new(AtomicBool::new(false)));
        let thread = {
            let (folder, cpus, over) = (folder.path().to_owned(), Arc::clone(&cpus), Arc::clone(&over));
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    tell(&folder, cpus.load(Ordering::Relaxed));
                    thread::park_timeout(Duration::from_millis(1));
                }
            })
        };
        Self { folder, cpus, over, thread: Some(thread) }
    }

    pub fn say(&self, cpus: u32) {
        self.cpus.store(cpus, Ordering::Relaxed);
    }

    /// The pages that there are.
    pub fn pages(&self) -> Vec<Page> {
        pages(self.folder.path())
            .filter_map(|path| Page::read(&fs::read(path).ok()?.try_into().ok()?))
            .collect()
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn pages(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let is_page = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().parse::<u32>().is_ok();
    fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).filter(is_page)
}

fn tell(folder: &Path, cpus: u32) {
    let now_ns = now_ns();
    for path in pages(folder) {
        if let Ok(file) = File::options().write(true).open(path) {
            file.write_all_at(&Page::said(cpus, Why::Share, now_ns), Page::SAID).unwrap();
        }
    }
}

/// A program that answers each line with a line of words and numbers.
pub struct Answering {
    child: Child,
    ask: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Answering {
    pub fn start(command: &mut Command, teller: &Teller) -> Self {
        command.env("HEARTH_DIR", teller.folder.path()).env("LD_PRELOAD", LIBRARY);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { ask: child.stdin.take(), answers, child }
    }

    pub fn ask(&mut self) -> HashMap<String, i64> {
        writeln!(self.ask.as_ref().unwrap(), "go").unwrap();
        numbers(&self.answers.next().expect("an answer").unwrap())
    }

    /// Asks until a number has a value; what else was answered then.
    pub fn until(&mut self, name: &str, value: i64) -> HashMap<String, i64> {
        let begin = Instant::now();
        loop {
            let answer = self.ask();
            if answer[name] == value {
                return answer;
            }
            assert!(begin.elapsed() < DEADLINE, "{name} is to be {value}: {answer:?}");
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn numbers(line: &str) -> HashMap<String, i64> {
    let words: Vec<_> = line.split_whitespace().collect();
    words.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].parse().unwrap())).collect()
}
