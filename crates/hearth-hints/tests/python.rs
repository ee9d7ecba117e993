//! The module for Python, where there is one; else the reason why nothing was tested is printed.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

fn python() -> Option<Command> {
    let mut command = Command::new("python3");
    command.env_remove("HEARTH_FRAGMENTS").env("HEARTH_WORDS", "/nowhere");
    let found = Command::new("python3").args(["-c", "import ctypes"]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(command);
    }
    eprintln!("skipped: there is no python3 with ctypes");
    None
}

fn assert_good(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn c_files() -> Vec<PathBuf> {
    let files = fs::read_dir(Path::new(CRATE).join("src")).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "c")).collect()
}

/// A folder with what pip would install, and a file that says which CPUs there are.
fn installed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let built = Command::new("cc")
        .args(["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-pthread", "-fPIC", "-shared"])
        .args(c_files())
        .arg("-o")
        .arg(folder.path().join("_hearth_hints.so"))
        .status();
    assert!(built.unwrap().success(), "the C compiler builds the library");
    fs::copy(Path::new(CRATE).join("python/hearth_hints.py"), folder.path().join("hearth_hints.py")).unwrap();
    fs::write(folder.path().join("machine"), "0-3").unwrap();
    folder
}

/// The blocks of a language in the page on data affinity.
fn examples(language: &str) -> Vec<String> {
    let page = fs::read_to_string(Path::new(CRATE).join("../../docs/fragments.md")).unwrap();
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n').map(String::from)).collect()
}

#[test]
fn threads_of_python_say_what_they_work_on() {
    let Some(mut python) = python() else { return };
    let folder = installed();
    python.env("PYTHONPATH", folder.path()).env("HEARTH_TOPOLOGY", folder.path().join("machine"));
    assert_good(&python.arg(Path::new(CRATE).join("tests/programs/hints.py")).output().unwrap());
}

#[test]
fn the_example_for_python_runs() {
    let Some(mut python) = python() else { return };
    let folder = installed();
    let examples = examples("python");
    assert!(!examples.is_empty());
    let script = examples.join("\n") + "\nassert hearth_hints.counts().enters > 0\n";
    assert_good(&python.env("PYTHONPATH", folder.path()).args(["-c", &script]).output().unwrap());
}

#[test]
fn without_its_compiled_part_the_module_says_what_to_do() {
    let Some(mut python) = python() else { return };
    python.env("PYTHONPATH", Path::new(CRATE).join("python")).args(["-c", "import hearth_hints"]);
    let said = String::from_utf8_lossy(&python.output().unwrap().stderr).into_owned();
    assert!(said.contains("ImportError") && said.contains("pip install"), "{said}");
}

/// In a copy, for pip leaves what it builds beside the sources.
#[test]
fn pip_installs_the_module() {
    let Some(mut python) = python() else { return };
    let pip = Command::new("python3").args(["-c", "import pip, setuptools, wheel"]).output().unwrap();
    if !pip.status.success() {
        eprintln!("skipped: python3 has no pip with setuptools and wheel");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let copied = Command::new("cp")
        .arg("-r")
        .args(["src", "include", "python"].map(|part| Path::new(CRATE).join(part)))
        .arg(folder.path())
        .status();
    assert!(copied.unwrap().success());
    let target = folder.path().join("installed");
    let mut install = Command::new("python3");
    install.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--target"]);
    assert_good(&install.arg(&target).arg(folder.path().join("python")).output().unwrap());
    python.env("PYTHONPATH", target).args(["-c", "import hearth_hints as h\nwith h.within(1): pass"]);
    assert_good(&python.output().unwrap());
}
