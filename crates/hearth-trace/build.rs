//! Compiles the QEMU plugin that records references into shared objects, which the crate embeds: one
//! for each version of QEMU's plugin interface that it supports.

use hearth_build::{compiler, out, run};

fn main() {
    println!("cargo::rerun-if-changed=plugin");
    for interface in [1, 2] {
        let mut compiler = compiler();
        compiler.args(["-fPIC", "-shared", "-fvisibility=hidden", "-pthread"]);
        compiler.arg(format!("-DPLUGIN_INTERFACE={interface}")).args(["plugin/recorder.c", "-o"]);
        run(compiler.arg(out().join(format!("recorder-{interface}.so"))));
    }
}
