//! Compiles the scheduler (`bpf/`) as a shared object, which a kernel of ours loads.

use hearth_seam::Build;
use std::path::{Path, PathBuf};
use std::process::Command;

const BPF: &str = "../../bpf";
const SOURCES: [&str; 2] = ["hearth.bpf.c", "inspect.h"];
const ACCESSES: &str = "src/interleaved.c";

fn main() {
    println!("cargo::rerun-if-changed={BPF}");
    println!("cargo::rerun-if-changed={ACCESSES}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let interleaved = std::env::var_os("CARGO_FEATURE_INTERLEAVED").is_some();
    if let Err(errors) = build(&out, interleaved) {
        errors.lines().for_each(|error| println!("cargo::error={error}"));
        std::process::exit(1);
    }
}

fn build(out: &Path, interleaved: bool) -> Result<(), String> {
    let scheduler = out.join("hearth.c");
    std::fs::write(&scheduler, hearth_seam::unit(&SOURCES, Build::Native))
        .map_err(|error| format!("{}: {error}", scheduler.display()))?;
    run(compiler().args(["-shared", "-Wl,-z,defs"]).arg(&scheduler).arg("-o").arg(out.join("hearth.so")))?;
    if interleaved { build_interleaved(out, &scheduler) } else { Ok(()) }
}

/// The same with a call at each access to memory. Linked without the sanitizer's own library.
fn build_interleaved(out: &Path, scheduler: &Path) -> Result<(), String> {
    let objects = [out.join("hearth.o"), out.join("interleaved.o")];
    run(compiler().args(["-fsanitize=thread", "-c"]).arg(scheduler).arg("-o").arg(&objects[0]))?;
    run(compiler().args(["-c", ACCESSES, "-o"]).arg(&objects[1]))?;
    run(compiler()
        .args(["-shared", "-Wl,-z,defs"])
        .args(&objects)
        .arg("-o")
        .arg(out.join("hearth-interleaved.so")))
}

fn compiler() -> Command {
    cc::Build::new()
        .include(BPF)
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

/// Runs the compiler; what it calls errors is the error, a line each.
fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| {
        let compiler = command.get_program().display();
        format!("the C compiler {compiler} does not run: {error}; on Debian: apt install gcc")
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    eprint!("{text}");
    Err(hearth_seam::errors(&format!("the C compiler failed:\n{text}")))
}
