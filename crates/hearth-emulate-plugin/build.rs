//! Compiles the program of known references that the tests run in a guest.

use std::path::PathBuf;
use std::{env, process};

fn main() {
    println!("cargo::rerun-if-changed=programs");
    println!("cargo::rerun-if-changed=../hearth-guest/programs");
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else {
        fail("OUT_DIR is not set: build with cargo")
    };
    let mut compile = cc::Build::new().opt_level(2).get_compiler().to_command();
    compile.args(["-std=gnu11", "-Wall", "-Wextra", "-static", "-no-pie", "programs/known.c", "-o"]);
    compile.arg(out.join("known"));
    match compile.status() {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("{compile:?} failed ({status})")),
        Err(error) => {
            fail(&format!("cannot run the C compiler ({error}); install one: apt-get install gcc libc6-dev"))
        }
    }
}

fn fail(message: &str) -> ! {
    eprintln!("hearth-emulate-plugin: {message}");
    process::exit(1)
}
