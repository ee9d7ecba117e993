//! Compiles the library that programs preload into a shared object, which the crate embeds.

use hearth_build::{c_files, compiler, out, run};
use std::path::Path;

const HINTS: &str = "../hearth-hints";

/// Only what other libraries' calls are to reach is visible; what hearth-hints offers to programs is not.
fn main() {
    println!("cargo::rerun-if-changed=preload");
    println!("cargo::rerun-if-changed={HINTS}/src");
    println!("cargo::rerun-if-changed={HINTS}/include");
    let mut compiler = compiler();
    compiler.args(["-D_GNU_SOURCE", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread"]);
    compiler.args(["-Wl,-z,now", "-Wl,-soname,libhearth-follow.so", "-s"]);
    compiler.arg(format!("-I{HINTS}/include")).arg(format!("-I{HINTS}/src"));
    compiler.args(c_files("preload")).args(c_files(Path::new(HINTS).join("src")));
    run(compiler.arg("-ldl").arg("-o").arg(out().join("libhearth-follow.so")));
}
