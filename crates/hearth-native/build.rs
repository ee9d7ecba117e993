//! Compiles the scheduler (`bpf/`) as a shared object, which a kernel of ours loads.

use std::path::{Path, PathBuf};
use std::process::Command;

const SCHEDULER: &str = "../../bpf/hearth.bpf.c";
const ACCESSES: &str = "src/interleaved.c";

fn main() {
    println!("cargo::rerun-if-changed=../../bpf");
    println!("cargo::rerun-if-changed={ACCESSES}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let interleaved = std::env::var_os("CARGO_FEATURE_INTERLEAVED").is_some();
    if let Err(what) = build(&out).and_then(|()| if interleaved { build_interleaved(&out) } else { Ok(()) }) {
        println!("cargo::error=the C compiler could not build {what}; on Debian: apt install gcc");
        std::process::exit(1);
    }
}

fn build(out: &Path) -> Result<(), &'static str> {
    run(compiler().args(["-shared", "-Wl,-z,defs", SCHEDULER, "-o"]).arg(out.join("hearth.so")), SCHEDULER)
}

/// The same with a call at each access to memory. Linked without the sanitizer's own library.
fn build_interleaved(out: &Path) -> Result<(), &'static str> {
    let (scheduler, accesses) = (out.join("hearth.o"), out.join("interleaved.o"));
    run(compiler().args(["-fsanitize=thread", "-c", SCHEDULER, "-o"]).arg(&scheduler), SCHEDULER)?;
    run(compiler().args(["-c", ACCESSES, "-o"]).arg(&accesses), ACCESSES)?;
    let object = out.join("hearth-interleaved.so");
    run(
        compiler().args(["-shared", "-Wl,-z,defs"]).args([&scheduler, &accesses]).arg("-o").arg(object),
        SCHEDULER,
    )
}

fn compiler() -> Command {
    cc::Build::new()
        .include("../../bpf/native")
        .flag("-std=gnu11")
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Wno-unused-parameter")
        .pic(true)
        .opt_level(2)
        .get_compiler()
        .to_command()
}

fn run(command: &mut Command, what: &'static str) -> Result<(), &'static str> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(what),
    }
}
