//! A program of `tests/programs` that does what it is told.

#![allow(clippy::unwrap_used)]
#![allow(dead_code, reason = "each test uses some of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn compiler() -> Command {
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-pthread", "-I"]).arg(root().join("include"));
    command
}

fn run_compiler(command: &mut Command, name: &str, out: &Path) {
    let status = command.arg("-o").arg(out).status();
    assert!(status.is_ok_and(|status| status.success()), "the C compiler builds {name}");
}

fn folder() -> PathBuf {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap().keep()
}

/// Builds a program of `tests/programs` and the library with this sanitizer.
pub fn build(name: &str, sanitizer: &str) -> PathBuf {
    let out = folder().join(name);
    let files = std::fs::read_dir(root().join("src")).unwrap().map(|file| file.unwrap().path());
    let sources = files.filter(|path| path.extension().is_some_and(|extension| extension == "c"));
    let mut compiler = compiler();
    compiler.arg(format!("-fsanitize={sanitizer}")).arg("-fno-sanitize-recover=all").args(sources);
    run_compiler(compiler.arg(root().join(format!("tests/programs/{name}.c"))), name, &out);
    out
}

/// Builds a program that is called at each access to memory that these parts of the library make.
pub fn build_interleaved(name: &str, parts: &[&str]) -> PathBuf {
    let folder = folder();
    let mut program = compiler();
    program.arg(root().join(format!("tests/programs/{name}.c")));
    for part in parts {
        let object = folder.join(format!("{part}.o"));
        let mut compiler = compiler();
        compiler.args(["-fsanitize=thread", "-c"]).arg(root().join(format!("src/{part}.c")));
        run_compiler(&mut compiler, part, &object);
        program.arg(object);
    }
    let out = folder.join(name);
    run_compiler(&mut program, name, &out);
    out
}

/// The program that does what its standard input says; built once.
fn obedient() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("obey", "address,undefined"))
}

pub struct Run {
    pub child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Run {
    pub fn begin() -> Self {
        Self::begin_with("HEARTH_FRAGMENTS", "")
    }

    pub fn begin_with(variable: &str, value: &str) -> Self {
        let mut command = Command::new(obedient());
        command.env_remove("HEARTH_TOPOLOGY").env("HEARTH_WORDS", "/nowhere").env(variable, value);
        Self::of(&mut command)
    }

    pub fn of(command: &mut Command) -> Self {
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, orders, answers }
    }

    /// A process whose threads can be moved; where none can be, the reason is printed.
    pub fn that_can_move() -> Option<Self> {
        let cpus = std::thread::available_parallelism().unwrap().get();
        if cpus < 2 {
            eprintln!("skipped: a thread can be moved only where there are two CPUs");
            return None;
        }
        Some(Self::begin())
    }

    /// A process that believes itself on a machine with these CPUs.
    pub fn on(cpus: &str) -> Self {
        Self::on_bytes(cpus.as_bytes())
    }

    pub fn on_bytes(machine: &[u8]) -> Self {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(machine).unwrap();
        let path = file.into_temp_path();
        let mut run = Self::begin_with("HEARTH_TOPOLOGY", path.to_str().unwrap());
        run.ask("home 1");
        run
    }

    pub fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    pub fn ask(&mut self, order: &str) -> i64 {
        self.order(order);
        self.answer_to(order)
    }

    /// What it says to an order that was given before.
    pub fn answer_to(&mut self, order: &str) -> i64 {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim().parse().unwrap_or_else(|_| panic!("{order:?}: {line:?}"))
    }

    /// The home of fragment 1, and another CPU.
    pub fn home_and_other(&mut self) -> (i64, i64) {
        self.order("enter 1");
        self.order("leave");
        let home = self.ask("home 1");
        (home, self.ask(&format!("other {home}")))
    }

    pub fn count(&mut self, name: &str) -> i64 {
        self.ask(&format!("count {name}"))
    }

    /// Has this be done by a child, which then exits.
    pub fn in_child<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        self.order("fork");
        let done = act(self);
        self.order("exit");
        done
    }

    /// Repeats this until it is true.
    pub fn until(&mut self, what: &str, mut is: impl FnMut(&mut Self) -> bool) {
        let begin = Instant::now();
        while !is(self) {
            assert!(begin.elapsed() < PATIENCE, "{what}");
        }
    }

    /// What it has said on standard error.
    pub fn end(mut self) -> String {
        drop(self.orders);
        let mut said = Vec::new();
        self.child.stderr.take().unwrap().read_to_end(&mut said).unwrap();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(self.child.wait().unwrap().success(), "the sanitizers found nothing: {said}");
        said
    }
}
