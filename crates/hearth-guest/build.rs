//! Compiles the programs that run in the guest, without shared libraries.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

const HINTS: &str = "../hearth-hints/src";

fn main() {
    println!("cargo::rerun-if-changed=programs");
    println!("cargo::rerun-if-changed={HINTS}");
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else {
        fail("OUT_DIR is not set: build with cargo")
    };
    compile(&["programs/bench.c".into()], &out.join("bench"));
    let tasks = [c_files("programs/tasks"), c_files(HINTS)].concat();
    compile(&tasks, &out.join("tasks"));
    compile(&c_files("programs/region"), &out.join("hearth-region"));
}

fn c_files(folder: &str) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| fail(&format!("cannot read {folder}: {error}")));
    let mut files: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    files.sort();
    files
}

fn compile(sources: &[PathBuf], program: &Path) {
    let mut compile = cc::Build::new().opt_level(2).get_compiler().to_command();
    compile.args(["-std=gnu11", "-Wall", "-Wextra", "-static", "-no-pie", "-pthread"]);
    compile.args(sources).arg("-o").arg(program);
    match compile.status() {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("{compile:?} failed ({status})")),
        Err(error) => {
            fail(&format!("cannot run the C compiler ({error}); install one: apt-get install gcc libc6-dev"))
        }
    }
}

fn fail(message: &str) -> ! {
    eprintln!("hearth-guest: {message}");
    process::exit(1)
}
