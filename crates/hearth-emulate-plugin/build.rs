//! Compiles the programs that the tests run in a guest: of known references, and of known waits.

use hearth_build::{compiler, out, run};

fn main() {
    println!("cargo::rerun-if-changed=programs");
    println!("cargo::rerun-if-changed=../hearth-guest/programs");
    println!("cargo::rerun-if-changed=../../tools/programs");
    for (source, name) in [("programs/known.c", "known"), ("../../tools/programs/requests.c", "requests")] {
        let mut compiler = compiler();
        compiler.args(["-static", "-no-pie", "-pthread", source, "-o"]);
        run(compiler.arg(out().join(name)));
    }
}
