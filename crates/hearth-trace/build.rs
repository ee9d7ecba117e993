//! Compiles the QEMU plugin that records references into a shared object, which the crate embeds.

use std::path::PathBuf;
use std::{env, process};

fn main() {
    println!("cargo::rerun-if-changed=plugin");
    let Some(out) = env::var_os("OUT_DIR") else { fail("OUT_DIR is not set: build with cargo") };
    let object = PathBuf::from(out).join("recorder.so");
    let mut compile = cc::Build::new().opt_level(2).get_compiler().to_command();
    compile.args(["-std=gnu11", "-Wall", "-Wextra", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread"]);
    compile.args(["plugin/recorder.c", "-o"]).arg(&object);
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
