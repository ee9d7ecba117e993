//! Records real programs. Tests that need a tool which is missing say so and pass, but for a QEMU that
//! `HEARTH_QEMU` names.

#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;

use hearth_trace::{
    Backend, Event, PAGE_BYTES, RecordError, RecordOptions, Summary, Trace, find_tool, record,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

const STREAM: &str = r#"
#include <stdlib.h>
static long data[1 << 20];
int main(void) {
    volatile long *p = data;
    long sum = 0;
    for (long i = 0; i < 1 << 20; i++) p[i] = i;
    for (long i = 0; i < 1 << 20; i++) sum += p[i];
    return sum == 42;
}"#;

const THREADS: &str = r#"
#include <pthread.h>
static volatile long data[4][100000];
static void *work(void *row) {
    volatile long *p = row;
    for (long i = 0; i < 100000; i++) p[i] = i;
    return 0;
}
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)data[i]);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}"#;

const FORK: &str = r#"
#include <sys/wait.h>
#include <unistd.h>
static volatile long data[1000];
int main(void) {
    if (fork() == 0) {
        for (long n = 0; n < 2000; n++) for (long i = 0; i < 1000; i++) data[i] = i;
        _exit(7);
    }
    int status;
    wait(&status);
    for (long i = 0; i < 1000; i++) data[i] = i;
    return WEXITSTATUS(status);
}"#;

const CRASH: &str = r#"
static volatile long data[100000];
int main(void) {
    for (long i = 0; i < 100000; i++) data[i] = i;
    *(volatile int *)8 = 1;
    return 0;
}"#;

const ENDLESS: &str = r#"
static volatile long data[1000];
int main(void) { for (long i = 0;; i++) data[i % 1000] = i; }"#;

const CLOSES_ALL: &str = r#"
#include <unistd.h>
static volatile long data[100000];
int main(void) {
    for (long i = 0; i < 100000; i++) data[i] = i;
    for (int fd = 3; fd < 4096; fd++) close(fd);
    for (long n = 0; n < 20; n++) for (long i = 0; i < 100000; i++) data[i] = i;
    return 3;
}"#;

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        Bench { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn compile(&self, source: &str, options: &[&str]) -> OsString {
        let (code, program) = (self.path("program.c"), self.path("program"));
        std::fs::write(&code, source).unwrap();
        let mut compile = Command::new("cc");
        compile.arg("-O1").args(options).arg(&code).arg("-o").arg(&program).arg("-pthread");
        assert!(compile.status().unwrap().success());
        program.into()
    }

    fn record(&self, command: &[OsString], change: impl FnOnce(&mut RecordOptions)) -> (Summary, Trace) {
        let mut options = RecordOptions::new(self.path("t.trace"));
        options.backend = Backend::Qemu;
        change(&mut options);
        let summary = record(command, options).unwrap();
        let trace = Trace::open(self.path("t.trace")).unwrap();
        trace.verify().unwrap();
        assert_eq!(*trace.info(), summary.info);
        (summary, trace)
    }
}

fn lacks(backend: Backend) -> bool {
    let missing = find_tool(backend).err();
    if let Some(error) = &missing {
        assert!(backend != Backend::Qemu || std::env::var_os("HEARTH_QEMU").is_none(), "{error}");
        println!("skipped: {error}");
    }
    missing.is_some()
}

/// The longest run of writes, each eight bytes after the one before or at the beginning of a page.
fn longest_streak_of_writes(events: &[Event]) -> usize {
    let (mut longest, mut streak, mut last) = (0, 0, 0);
    for event in events.iter().filter(|event| event.is_write() && event.bytes() == 8) {
        let follows = event.address() % PAGE_BYTES == (last + 8) % PAGE_BYTES;
        let same_page = event.address() / PAGE_BYTES == last / PAGE_BYTES;
        streak = if follows && (same_page || last % PAGE_BYTES == PAGE_BYTES - 8) { streak + 1 } else { 1 };
        (longest, last) = (longest.max(streak), event.address());
    }
    longest
}

fn events(trace: &Trace, thread: u32) -> std::sync::Arc<[Event]> {
    trace.load_thread(thread, 100_000_000).unwrap()
}

#[test]
fn a_small_program_is_recorded_whole() {
    if lacks(Backend::Qemu) {
        return;
    }
    let (summary, trace) = Bench::new().record(&["/bin/true".into()], |_| {});
    assert!(summary.status.success() && summary.info.notes.is_empty(), "{:?}", summary.info.notes);
    assert_eq!(
        (trace.info().command.as_slice(), trace.info().threads.len()),
        (&["/bin/true".to_owned()][..], 1)
    );
    let total = trace.info().total;
    assert!(total.fetches > 1000 && total.reads > 1000 && total.writes > 1000, "{total:?}");
    assert!(total.instructions > total.references(), "{total:?}");
}

#[test]
fn every_reference_of_a_loop_is_there_in_dynamic_and_static_programs() {
    if lacks(Backend::Qemu) {
        return;
    }
    for options in [&[][..], &["-static"]] {
        let bench = Bench::new();
        let (_, trace) = bench.record(&[bench.compile(STREAM, options)], |_| {});
        assert_eq!(longest_streak_of_writes(&events(&trace, 0)), 1 << 20);
        assert!(trace.info().total.reads >= 1 << 20);
        assert!(trace.info().pages >= 8 << 20 >> 12);
    }
}

#[test]
fn counts_agree_with_cachegrind() {
    if lacks(Backend::Qemu) || lacks(Backend::Lackey) {
        return;
    }
    let bench = Bench::new();
    let program = bench.compile(STREAM, &["-static"]);
    let (_, trace) = bench.record(std::slice::from_ref(&program), |_| {});
    let mut cachegrind = Command::new("valgrind");
    cachegrind.args(["--tool=cachegrind", "--cachegrind-out-file=/dev/null"]).arg(program);
    let report = String::from_utf8(cachegrind.output().unwrap().stderr).unwrap();
    let count = |name: &str| -> f64 {
        let line = report.lines().find(|line| line.contains(name)).unwrap();
        let number = line.split(name).nth(1).unwrap().split_whitespace().next().unwrap();
        number.replace(',', "").parse().unwrap()
    };
    let total = trace.info().total;
    let differs = |ours: u64, theirs: f64| (ours as f64 / theirs - 1.0).abs();
    assert!(differs(total.references(), count("D   refs:")) < 0.005, "{total:?}\n{report}");
    assert!(differs(total.instructions, count("I   refs:")) < 0.005, "{total:?}\n{report}");
}

#[test]
fn threads_are_recorded_apart() {
    if lacks(Backend::Qemu) {
        return;
    }
    let bench = Bench::new();
    let (_, trace) = bench.record(&[bench.compile(THREADS, &[])], |_| {});
    assert_eq!(trace.info().threads.len(), 4);
    for thread in 1..4 {
        let longest = longest_streak_of_writes(&events(&trace, thread));
        assert!(longest >= 95_000, "thread {thread} wrote {longest} in a row");
    }
    assert!(longest_streak_of_writes(&events(&trace, 0)) < 50_000);
}

#[test]
fn a_forked_process_runs_on_unrecorded() {
    if lacks(Backend::Qemu) {
        return;
    }
    let bench = Bench::new();
    let (summary, trace) = bench.record(&[bench.compile(FORK, &["-static"])], |_| {});
    assert_eq!(summary.status.code(), Some(7));
    assert!(trace.info().total.writes < 100_000, "{:?}", trace.info().total);
    assert!(longest_streak_of_writes(&events(&trace, 0)) >= 1000);
    assert_eq!(trace.info().notes, ["the program ended with exit status 7"]);
}

#[test]
fn a_program_that_replaces_itself_is_recorded_until_then() {
    if lacks(Backend::Qemu) {
        return;
    }
    let command = ["/usr/bin/env", "/no/such/program"].map(OsString::from);
    let (summary, _) = Bench::new().record(&command, |_| {});
    assert_eq!(summary.info.notes, ["the program ended with exit status 127"]);
    let command = ["/usr/bin/env", "/bin/true"].map(OsString::from);
    let (summary, _) = Bench::new().record(&command, |_| {});
    assert!(summary.status.success());
    assert!(summary.info.notes[0].contains("replaced itself (execve)"), "{:?}", summary.info.notes);
}

#[test]
fn a_crashing_program_leaves_a_trace_up_to_the_crash() {
    if lacks(Backend::Qemu) {
        return;
    }
    let no_core_files = Rlimit { current: Some(0), maximum: getrlimit(Resource::Core).maximum };
    setrlimit(Resource::Core, no_core_files).unwrap();
    let bench = Bench::new();
    let (summary, trace) = bench.record(&[bench.compile(CRASH, &[])], |_| {});
    assert!(!summary.status.success());
    assert_eq!(longest_streak_of_writes(&events(&trace, 0)), 100_000);
    assert!(summary.info.notes[0].contains("killed by signal 11"), "{:?}", summary.info.notes);
}

#[test]
fn a_limit_cuts_the_recording_and_ends_the_program() {
    if lacks(Backend::Qemu) {
        return;
    }
    let bench = Bench::new();
    let program = bench.compile(ENDLESS, &[]);
    let (summary, trace) = bench.record(&[program], |options| options.max_references = Some(1_000_000));
    let references = trace.info().total.references();
    assert!((1_000_000..1_500_000).contains(&references), "{references}");
    assert!(summary.info.notes[0].contains("cut: the recording ended at the limit of 1000000 references"));
}

#[test]
fn an_interrupted_recording_becomes_a_trace() {
    if lacks(Backend::Qemu) {
        return;
    }
    let bench = Bench::new();
    let program = bench.compile(ENDLESS, &[]);
    let (summary, trace) = bench.record(&[program], |options| {
        let interrupt = options.interrupt.clone();
        options.progress =
            Some(Box::new(move |references| interrupt.store(references > 0, Ordering::Relaxed)));
    });
    assert!(trace.info().total.references() > 0);
    assert!(summary.info.notes[0].starts_with("interrupted"), "{:?}", summary.info.notes);
}

#[test]
fn a_program_that_closes_the_recorders_descriptors_is_recorded_until_then() {
    if lacks(Backend::Qemu) {
        return;
    }
    let bench = Bench::new();
    let (summary, trace) = bench.record(&[bench.compile(CLOSES_ALL, &[])], |_| {});
    assert_eq!(summary.status.code(), Some(3));
    assert!(longest_streak_of_writes(&events(&trace, 0)) >= 50_000);
    assert!(trace.info().total.writes < 300_000);
    assert!(
        summary.info.notes.iter().any(|note| note.contains("closed descriptors")),
        "{:?}",
        summary.info.notes
    );
}

#[test]
fn lackey_records_the_same_loop() {
    if lacks(Backend::Lackey) {
        return;
    }
    let bench = Bench::new();
    let program = bench.compile(&STREAM.replace("1 << 20", "1 << 16"), &["-static"]);
    let (summary, trace) = bench.record(&[program], |options| options.backend = Backend::Lackey);
    assert_eq!(longest_streak_of_writes(&events(&trace, 0)), 1 << 16);
    assert!(summary.status.success() && trace.info().recorder.contains("lackey"));
    assert!(trace.info().total.instructions > 2 << 17);
}

#[test]
fn a_command_that_cannot_be_recorded_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let refuse = |command: &Path| {
        let options = RecordOptions::new(folder.path().join("t.trace"));
        record(&[command.into()], options).unwrap_err()
    };
    assert!(matches!(refuse(Path::new("/no/such/command")), RecordError::NotFound(_)));
    assert!(matches!(refuse(Path::new("/etc/passwd")), RecordError::NotX86 { .. }));
    assert!(matches!(refuse(Path::new("/usr")), RecordError::NotExecutable { .. }));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_file_that_is_no_trace_is_replaced_only_by_force() {
    if lacks(Backend::Auto) {
        return;
    }
    let bench = Bench::new();
    let path = bench.path("t.trace");
    let attempt = |force| {
        let mut options = RecordOptions::new(&path);
        options.force = force;
        record(&["/bin/true".into()], options)
    };
    std::fs::write(&path, "mine").unwrap();
    assert!(matches!(attempt(false), Err(RecordError::NotOurs { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    attempt(true).unwrap();
    let trace = std::fs::read(&path).unwrap();
    for replaceable in [&trace[..], &trace[..trace.len() / 2], &trace[..10], &[]] {
        std::fs::write(&path, replaceable).unwrap();
        attempt(false).unwrap();
    }
}
