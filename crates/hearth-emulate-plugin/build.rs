//! Compiles the program of known references that the tests run in a guest.

use hearth_build::{compiler, out, run};

fn main() {
    println!("cargo::rerun-if-changed=programs");
    println!("cargo::rerun-if-changed=../hearth-guest/programs");
    let mut compiler = compiler();
    compiler.args(["-static", "-no-pie", "programs/known.c", "-o"]);
    run(compiler.arg(out().join("known")));
}
