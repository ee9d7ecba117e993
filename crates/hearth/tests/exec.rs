//! `hearth exec`: the program's exit code, signals, environment and output are its own.
#![allow(clippy::unwrap_used, reason = "tests")]

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A folder for pages, libraries and programs.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new().mode(0o700).create(folder.path().join("pages")).unwrap();
        Self(folder)
    }

    fn exec(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hearth"));
        command.arg("exec").args(words).env_remove("LD_PRELOAD").stdin(Stdio::null());
        command.env("HEARTH_DIR", self.0.path().join("pages")).env("XDG_CACHE_HOME", self.0.path());
        command
    }

    fn output(&self, words: &[&str]) -> Output {
        self.exec(words).output().unwrap()
    }

    /// Compiles a program; none, with the reason printed, where that cannot be done.
    fn compile(&self, source: &str, compiler: &[&str]) -> Option<String> {
        let (file, program) = (self.0.path().join("program.c"), self.0.path().join("program"));
        fs::write(&file, source).unwrap();
        let done = Command::new(compiler[0]).args(&compiler[1..]).arg(&file).arg("-o").arg(&program).output();
        if !done.is_ok_and(|done| done.status.success()) {
            println!("skipped: {} does not compile it", compiler.join(" "));
            return None;
        }
        Some(program.to_str().unwrap().to_owned())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_exit_code_is_the_programs() {
    let place = Place::new();
    for code in [0, 1, 2, 77, 255] {
        let done = place.output(&["--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!((done.status.code(), text(&done.stderr)), (Some(code), String::new()));
    }
}

#[test]
fn a_signal_that_ends_the_program_ends_it_too() {
    let place = Place::new();
    for signal in [Signal::TERM, Signal::SEGV, Signal::KILL] {
        let script = format!("kill -{} $$", signal.as_raw());
        assert_eq!(place.output(&["--", "sh", "-c", &script]).status.signal(), Some(signal.as_raw()));
    }
}

#[test]
fn what_cannot_be_run_has_the_codes_of_a_shell() {
    let place = Place::new();
    let absent = place.output(&["--", "no-such-program-anywhere"]);
    assert_eq!(absent.status.code(), Some(127), "{}", text(&absent.stderr));
    let folder = place.output(&["--", "/etc/passwd"]);
    assert_eq!(folder.status.code(), Some(126));
    assert!(text(&folder.stderr).contains("cannot run passwd"), "{}", text(&folder.stderr));
    assert_eq!(place.output(&[]).status.code(), Some(2));
}

/// The program's first line.
fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

#[test]
fn signals_are_passed_on() {
    let place = Place::new();
    let script = "trap 'exit 42' USR1; trap 'exit 43' TERM; trap 'exit 44' INT; echo ready; while :; do sleep 0.01; done";
    for (signal, code) in [(Signal::USR1, 42), (Signal::TERM, 43), (Signal::INT, 44)] {
        let mut child = place.exec(&["--", "sh", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        assert_eq!(first_line(&mut child), "ready");
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
}

#[test]
fn the_program_outlives_a_wait_that_is_killed() {
    let place = Place::new();
    let mut child = place
        .exec(&["--", "sh", "-c", "echo $$; read line; echo still here"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    first_line(&mut child);
    child.kill().unwrap();
    drop(child.stdin.take());
    let mut rest = String::new();
    child.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "still here\n");
    child.wait().unwrap();
}

#[test]
fn what_the_user_preloads_comes_first() {
    let place = Place::new();
    let mut command = place.exec(&["--", "sh", "-c", "echo $LD_PRELOAD"]);
    let done = command.env("LD_PRELOAD", "libm.so.6").output().unwrap();
    let preloaded = text(&done.stdout);
    let (users, ours) = preloaded.trim().split_once(':').unwrap();
    assert_eq!(users, "libm.so.6");
    assert!(Path::new(ours).starts_with(place.0.path()), "{ours}");
}

#[test]
fn nothing_stays_but_one_library() {
    let place = Place::new();
    for _ in 0..3 {
        assert!(place.output(&["--", "true"]).status.success());
    }
    assert_eq!(fs::read_dir(place.0.path().join("hearth")).unwrap().count(), 1);
    let pages = fs::read_dir(place.0.path().join("pages")).unwrap().flatten();
    let pages: Vec<_> =
        pages.map(|entry| entry.file_name()).filter(|name| name != "leader" && name != "news").collect();
    assert!(pages.is_empty(), "{pages:?}");
}

#[test]
fn a_static_program_runs_as_it_is_and_that_is_said() {
    let place = Place::new();
    let Some(program) = place.compile("int main(void) { return 5; }", &["gcc", "-static"]) else { return };
    let done = place.output(&["--", &program]);
    assert_eq!(done.status.code(), Some(5));
    assert_eq!(
        text(&done.stderr),
        "hearth: program cannot follow: it is static, so nothing can be loaded into it; it runs as it is\n"
    );
}

const PARALLEL: &str =
    "int main(void) { int n = 0;\n#pragma omp parallel reduction(+ : n)\nn++;\nreturn !n; }";

#[test]
fn it_says_how_the_program_follows_and_what_it_was_told() {
    let place = Place::new();
    let Some(program) = place.compile(PARALLEL, &["gcc", "-fopenmp"]) else { return };
    let done = place.output(&["-v", "--report", "--", &program]);
    let said = text(&done.stderr);
    assert!(done.status.success() && done.stdout.is_empty());
    assert!(said.starts_with("hearth: program follows while it runs (GNU's OpenMP)\n"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
}

#[test]
fn where_no_page_can_be_made_the_program_runs_all_the_same() {
    let place = Place::new();
    let Some(program) = place.compile(PARALLEL, &["gcc", "-fopenmp"]) else { return };
    let mut command = place.exec(&["--", &program]);
    let done = command.env("HEARTH_DIR", "/proc/no-such-folder").output().unwrap();
    assert_eq!((done.status.code(), text(&done.stderr)), (Some(0), String::new()));
}

#[test]
fn a_number_that_the_user_has_set_stays() {
    let place = Place::new();
    let script = "echo $RAYON_NUM_THREADS";
    let mut users = place.exec(&["--", "sh", "-c", script]);
    assert_eq!(text(&users.env("RAYON_NUM_THREADS", "7").output().unwrap().stdout), "7\n");
}
