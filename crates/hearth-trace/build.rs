//! Compiles the QEMU plugin that records references into shared objects, which the crate embeds: one
//! for each version of QEMU's plugin interface that it supports.

use std::path::Path;
use std::{env, process};

fn main() {
    println!("cargo::rerun-if-changed=plugin");
    let Some(out) = env::var_os("OUT_DIR") else { fail("OUT_DIR is not set: build with cargo") };
    for interface in [1, 2] {
        compile(interface, &Path::new(&out).join(format!("recorder-{interface}.so")));
    }
}

fn compile(interface: u32, object: &Path) {
    let mut compile = cc::Build::new().opt_level(2).get_compiler().to_command();
    compile.args(["-std=gnu11", "-Wall", "-Wextra", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread"]);
    compile.arg(format!("-DPLUGIN_INTERFACE={interface}")).args(["plugin/recorder.c", "-o"]).arg(object);
    match compile.status() {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("{compile:?} failed ({status})")),
        Err(error) => {
            fail(&format!("cannot run the C compiler ({error}); install one: apt-get install gcc libc6-dev"))
        }
    }
}

fn fail(message: &str) -> ! {
    eprintln!("hearth-trace: {message}");
    process::exit(1)
}
