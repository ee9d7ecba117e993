//! Compiles the programs that run in the guest, without shared libraries.

use hearth_build::{c_files, compiler, out, run};
use std::path::{Path, PathBuf};

const HINTS: &str = "../hearth-hints/src";

fn main() {
    println!("cargo::rerun-if-changed=programs");
    println!("cargo::rerun-if-changed={HINTS}");
    let out = out();
    program(&["programs/bench.c".into()], &out.join("bench"), &[]);
    program(&["programs/load.c".into()], &out.join("hearth-load"), &[]);
    program(&[c_files("programs/tasks"), c_files(HINTS)].concat(), &out.join("tasks"), &[]);
    let module = out.join("counters.o");
    kernel_module("programs/counters/module.c", &module);
    let defines = [format!("-DCOUNTERS_MODULE=\"{}\"", module.display())];
    program(&c_files("programs/region"), &out.join("hearth-region"), &defines);
}

fn program(sources: &[PathBuf], program: &Path, defines: &[String]) {
    let mut compiler = compiler();
    compiler.args(["-static", "-no-pie", "-pthread"]);
    run(compiler.args(defines).args(sources).arg("-o").arg(program));
}

/// A module for the guest's kernel. It is the kernel's code: no red zone below its stack, no registers but general ones.
fn kernel_module(source: &str, object: &Path) {
    let mut compiler = compiler();
    compiler.args(["-ffreestanding", "-fno-pic", "-mcmodel=kernel", "-mno-red-zone", "-mgeneral-regs-only"]);
    compiler.args(["-fno-stack-protector", "-fcf-protection=none", "-fno-asynchronous-unwind-tables", "-c"]);
    run(compiler.arg(source).arg("-o").arg(object));
}
