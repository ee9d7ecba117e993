//! Programs of Go and of the JVM under `hearth exec`: they follow by the CPUs that they may run on.
#![allow(clippy::unwrap_used, reason = "tests")]

use hearth_hints::page::{Page, Why};
use hearth_host::clock::now_ns;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Runtimes look again every few seconds.
const DEADLINE: Duration = Duration::from_secs(60);

/// A folder in which this test says the numbers, and nobody else.
struct Place {
    folder: TempDir,
    _lead: File,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::DirBuilder::new().mode(0o700).create(folder.path().join("pages")).unwrap();
        let lead = File::create(folder.path().join("pages/leader")).unwrap();
        lead.lock().unwrap();
        Self { folder, _lead: lead }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Tells a number to all that follow.
    fn say(&self, cpus: u32) {
        for entry in fs::read_dir(self.path("pages")).unwrap().flatten() {
            let is_page = entry.file_name().to_str().unwrap().parse::<u32>().is_ok();
            // It may have gone meanwhile.
            if let Some(page) = is_page.then(|| File::options().write(true).open(entry.path()).ok()).flatten()
            {
                page.write_all_at(&Page::said(cpus, Why::Share, now_ns()), Page::SAID).unwrap();
            }
        }
    }

    /// Whether a compiler did its work; if not, the reason is printed.
    fn compiles(&self, source: (&str, &str), command: &[&str]) -> bool {
        fs::write(self.path(source.0), source.1).unwrap();
        let done = Command::new(command[0]).args(&command[1..]).current_dir(self.folder.path()).output();
        let failure = match done {
            Ok(done) if done.status.success() => return true,
            Ok(done) => String::from_utf8_lossy(&done.stderr).lines().next().unwrap_or("").to_owned(),
            Err(error) => error.to_string(),
        };
        println!("skipped: {} does not compile it: {failure}", command.join(" "));
        false
    }

    fn start(&self, program: &[&str]) -> Program {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hearth"));
        command.args(["exec", "--"]).args(program).current_dir(self.folder.path());
        command.env("HEARTH_DIR", self.path("pages")).env("XDG_CACHE_HOME", self.folder.path());
        command.env_remove("LD_PRELOAD").env_remove("GOMAXPROCS");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Program { ask: child.stdin.take(), answers, child }
    }

    /// The program answers, in the end, with each number that it is told.
    fn follows(&self, program: &[&str]) {
        let mut program = self.start(program);
        for cpus in [1, 2, 1] {
            let begin = Instant::now();
            loop {
                self.say(cpus);
                let seen = program.cpus();
                if seen == cpus {
                    break;
                }
                assert!(begin.elapsed() < DEADLINE, "told {cpus}, it sees {seen}");
            }
        }
    }
}

/// A program that answers each line with the number of CPUs that it sees.
struct Program {
    child: Child,
    ask: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn cpus(&mut self) -> u32 {
        writeln!(self.ask.as_ref().unwrap(), "?").unwrap();
        self.answers.next().expect("an answer").unwrap().parse().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // At the end of what it reads it ends.
        drop(self.ask.take());
        let _ = self.child.wait();
    }
}

fn has_cpus() -> bool {
    let has = rustix::thread::sched_getaffinity(None).unwrap().count() >= 2;
    if !has {
        println!("skipped: every mask is that of the one CPU");
    }
    has
}

const GO: &str = r#"package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
)

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(runtime.GOMAXPROCS(0))
	}
}
"#;

#[test]
fn a_go_program_has_as_many_processors_as_it_can_get_cpus() {
    let place = Place::new();
    if has_cpus() && place.compiles(("cpus.go", GO), &["go", "build", "-o", "cpus", "cpus.go"]) {
        place.follows(&["./cpus"]);
    }
}

const JAVA: &str = r#"import java.util.Scanner;

public class Cpus {
	public static void main(String[] arguments) {
		for (Scanner lines = new Scanner(System.in); lines.hasNextLine(); lines.nextLine())
			System.out.println(Runtime.getRuntime().availableProcessors());
	}
}
"#;

#[test]
fn a_java_program_sees_as_many_cpus_as_it_can_get() {
    let place = Place::new();
    if has_cpus() && place.compiles(("Cpus.java", JAVA), &["javac", "Cpus.java"]) {
        place.follows(&["java", "-cp", ".", "Cpus"]);
    }
}
