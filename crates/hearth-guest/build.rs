//! Compiles the programs that run in the guest, without shared libraries.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, process};

const HINTS: &str = "../hearth-hints/src";

fn main() {
    println!("cargo::rerun-if-changed=programs");
    println!("cargo::rerun-if-changed={HINTS}");
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else {
        fail("OUT_DIR is not set: build with cargo")
    };
    compile(&["programs/bench.c".into()], &out.join("bench"), &[]);
    let tasks = [c_files("programs/tasks"), c_files(HINTS)].concat();
    compile(&tasks, &out.join("tasks"), &[]);
    let module = out.join("counters.o");
    compile_module("programs/counters/module.c", &module);
    let region = c_files("programs/region");
    compile(&region, &out.join("hearth-region"), &[format!("-DCOUNTERS_MODULE=\"{}\"", module.display())]);
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

fn compile(sources: &[PathBuf], program: &Path, defines: &[String]) {
    let mut compile = compiler();
    compile.args(["-static", "-no-pie", "-pthread"]);
    run(compile.args(defines).args(sources).arg("-o").arg(program));
}

/// A module for the guest's kernel. It is the kernel's code: no red zone below its stack, no registers but general ones.
fn compile_module(source: &str, object: &Path) {
    let mut compile = compiler();
    compile.args(["-ffreestanding", "-fno-pic", "-mcmodel=kernel", "-mno-red-zone", "-mgeneral-regs-only"]);
    compile.args(["-fno-stack-protector", "-fcf-protection=none", "-fno-asynchronous-unwind-tables", "-c"]);
    run(compile.arg(source).arg("-o").arg(object));
}

fn compiler() -> Command {
    let mut compiler = cc::Build::new().opt_level(2).get_compiler().to_command();
    compiler.args(["-std=gnu11", "-Wall", "-Wextra"]);
    compiler
}

fn run(compile: &mut Command) {
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
