//! `hearth emulate`, as far as no guest has to boot: wrong input, and a QEMU that does not do its part.

use crate::complaint;
use assert_cmd::Command;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn emulate<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["emulate"], more].concat()
}

#[test]
fn a_wrong_name_is_answered_with_the_nearest() {
    for (arguments, answer) in [
        (&["--schedulers", "kernal", "--", "true"][..], "did you mean kernel?"),
        (&["--schedulers", "light", "--", "true"], "did you mean hearth:light?"),
        (&["--schedulers", "hearth:ligth", "--", "true"], "did you mean light?"),
        (&["--schedulers", "kernel,kernel", "--", "true"], "two called kernel"),
        (&["--machine", "dash-61", "--", "true"], "did you mean dash-16?"),
        (&["--", "no-such-program"], "there is no program \"no-such-program\""),
        (&["--program", "no-such-program", "--", "true"], "no-such-program"),
        (&["--file", "no/such/file", "--", "true"], "no/such/file"),
        (&["--copies", "0", "--", "true"], "from 1 to 1024"),
        (&["--report", "no/such/folder/x.html", "--", "true"], "no/such/folder"),
        (&["--keep", "/bin/true", "--", "true"], "--keep takes a folder"),
        (&["--keep", "/proc", "--", "true"], "--keep takes a folder"),
        (&[], "COMMAND"),
    ] {
        let complaint = complaint(&emulate(arguments), 2);
        assert!(complaint.contains(answer), "{arguments:?}: {complaint}");
    }
}

#[test]
fn a_machine_that_a_guest_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.toml");
    let dash = include_str!("../../../../machines/dash-16.toml");
    let lame =
        dash.replace("[[node]]\ncount = 4", "[[node]]\ncpus = 2\nmemory = \"56 MiB\"\n\n[[node]]\ncount = 3");
    assert_ne!(lame, dash);
    fs::write(&file, lame).unwrap();
    let text = complaint(&emulate(&["--machine", file.to_str().unwrap(), "--", "true"]), 2);
    assert!(text.contains("dash-16 cannot be emulated: node 0 has 2 CPUs and node 1 has 4"), "{text}");
}

/// A folder of programs in which QEMU is a shell script.
struct FakeQemu {
    folder: TempDir,
}

impl FakeQemu {
    /// `version` is what it says of itself, `run` what it does else.
    fn new(version: &str, run: &str) -> Self {
        let fake = Self { folder: tempfile::tempdir().unwrap() };
        let qemu = fake.path().join("qemu-system-x86_64");
        let text = format!("#!/bin/sh\n[ \"$1\" = --version ] && {{ echo '{version}'; exit; }}\n{run}\n");
        fs::write(&qemu, text).unwrap();
        fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(fake.path().join("hearth"), "").unwrap();
        fs::create_dir_all(fake.kernel().parent().unwrap()).unwrap();
        fs::write(fake.kernel(), "").unwrap();
        fake
    }

    fn cache(&self) -> PathBuf {
        self.path().join("cache")
    }

    fn kernel(&self) -> PathBuf {
        self.cache().join("hearth/guest/vmlinuz-pinned")
    }

    /// Its programs, then those of this host.
    fn search(&self) -> String {
        format!("{}:{}", self.path().display(), std::env::var("PATH").unwrap())
    }

    /// One without QEMU.
    fn none() -> Self {
        let fake = Self::new("", "");
        fs::remove_file(fake.path().join("qemu-system-x86_64")).unwrap();
        for name in ["ldd", "bash"] {
            symlink(Path::new("/usr/bin").join(name), fake.path().join(name)).unwrap();
        }
        fake
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, path: &str, arguments: &[&str]) -> process::Command {
        let mut command = process::Command::new(env!("CARGO_BIN_EXE_hearth-lab"));
        command.args(emulate(&["--schedulers", "kernel"])).args(arguments).args(["--", "/bin/true"]);
        command.env("PATH", path).env("XDG_CACHE_HOME", self.cache());
        command.env("HEARTH_EMULATE_PLUGIN", self.kernel());
        command
    }

    /// What the command says when it ends with `code`.
    fn complaint(&self, arguments: &[&str], code: i32) -> String {
        let command = self.command(&self.search(), arguments);
        let assertion = Command::from_std(command).assert().code(code).stdout("");
        String::from_utf8(assertion.get_output().stderr.clone()).unwrap()
    }
}

/// Without busybox there is no guest to make an image for.
fn has_busybox() -> bool {
    let has = Path::new("/bin/busybox").is_file();
    if !has {
        eprintln!("skipped: /bin/busybox is missing");
    }
    has
}

const NEW: &str = "QEMU emulator version 10.0.2";

#[test]
fn what_is_missing_is_said_with_what_installs_it() {
    let old = FakeQemu::new("QEMU emulator version 7.2.17", "");
    let text = old.complaint(&[], 4);
    assert!(text.contains("too old") && text.contains("tools/install-guest"), "{text}");

    let none = FakeQemu::none();
    let command = none.command(none.path().to_str().unwrap(), &[]);
    let assertion = Command::from_std(command).assert().code(4);
    let text = String::from_utf8_lossy(&assertion.get_output().stderr).into_owned();
    assert!(text.contains("cannot run qemu-system-x86_64"), "{text}");

    let mut command = old.command(&old.search(), &[]);
    command.env("HEARTH_EMULATE_PLUGIN", "/no/such/plugin.so");
    let assertion = Command::from_std(command).assert().code(4);
    let text = String::from_utf8_lossy(&assertion.get_output().stderr).into_owned();
    assert!(text.contains("/no/such/plugin.so") && text.contains("HEARTH_EMULATE_PLUGIN"), "{text}");
}

#[test]
fn a_guest_that_panics_or_hangs_is_told_with_its_last_lines() {
    if !has_busybox() {
        return;
    }
    let say = "for word in \"$@\"; do case $word in file:*console) \
               echo 'Kernel panic - not syncing' >${word#file:};; esac; done";
    let text = FakeQemu::new(NEW, say).complaint(&[], 1);
    assert!(text.contains("ended before its script did") && text.contains("Kernel panic"), "{text}");

    let hangs = format!("{say}\nexec sleep 1000");
    let text = FakeQemu::new(NEW, &hangs).complaint(&["--limit", "1s"], 1);
    assert!(text.contains("did not end within 1 s") && text.contains("--limit"), "{text}");
    assert!(text.contains("Kernel panic"), "{text}");
}

#[test]
fn an_interruption_ends_the_guest_with_the_command() {
    if !has_busybox() {
        return;
    }
    let fake = FakeQemu::new(
        NEW,
        "echo $$ >\"${0%/*}/pid.new\"; mv \"${0%/*}/pid.new\" \"${0%/*}/pid\"\nexec sleep 1000",
    );
    let child = fake.command(&fake.search(), &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = child.unwrap();
    let qemu = wait_for(|| fs::read_to_string(fake.path().join("pid")).ok());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let gone = || (!Path::new("/proc").join(qemu.trim()).exists()).then_some(());
    wait_for(gone);
}

fn wait_for<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "it did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}
