//! Compiles the programs that run in the guest, without shared libraries.

use std::path::{Path, PathBuf};
use std::{env, process};

const PROGRAMS: [(&str, &[&str]); 2] = [
    ("bench", &["bench.c"]),
    (
        "tasks",
        &[
            "tasks/main.c",
            "tasks/spin.c",
            "tasks/waiting.c",
            "tasks/classes.c",
            "tasks/ends.c",
            "tasks/pressure.c",
            "tasks/pages.c",
            "tasks/follow.c",
            "tasks/gaps.c",
            "tasks/declare.c",
            "tasks/fragments.c",
            "../../hearth-hints/src/hints.c",
            "../../hearth-hints/src/limits.c",
            "../../hearth-hints/src/fragments.c",
            "../../hearth-hints/src/homes.c",
            "../../hearth-hints/src/pays.c",
            "../../hearth-hints/src/samples.c",
            "../../hearth-hints/src/trial.c",
            "../../hearth-hints/src/cpus.c",
            "../../hearth-hints/src/place.c",
            "../../hearth-hints/src/register.c",
        ],
    ),
];

fn main() {
    println!("cargo::rerun-if-changed=programs");
    println!("cargo::rerun-if-changed=../hearth-hints/src");
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else {
        fail("OUT_DIR is not set: build with cargo")
    };
    for (program, sources) in PROGRAMS {
        compile(program, sources, &out);
    }
}

fn compile(program: &str, sources: &[&str], out: &Path) {
    let mut compile = cc::Build::new().opt_level(2).get_compiler().to_command();
    compile.args(["-std=gnu11", "-Wall", "-Wextra", "-static", "-no-pie", "-pthread"]);
    compile.args(sources.iter().map(|source| format!("programs/{source}"))).arg("-o").arg(out.join(program));
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
