//! Compiles the scheduler (`bpf/`) as shared objects, which a kernel of ours loads.

use hearth_abi::{Build, unit};
use hearth_build::{fail, out, profile, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const BPF: &str = "../../bpf";
const SCHEDULERS: [&str; 2] = ["hearth", "papers"];
const BASELINE: &str = "baseline/kernel.c";
const ACCESSES: &str = "src/interleaved.c";

fn main() {
    println!("cargo::rerun-if-changed={BPF}");
    println!("cargo::rerun-if-changed={ACCESSES}");
    let (out, finished) = (out(), profile().join("scheduler"));
    let baseline = source(&out, "kernel", &[BASELINE], Build::Baseline);
    let mut objects = vec![shared(&out, &baseline)];
    for name in SCHEDULERS {
        let source = source(&out, name, &[&format!("{name}.bpf.c"), "inspect.h"], Build::Native);
        objects.extend([shared(&out, &source), interleaved(&out, &source)]);
    }
    check(fs::create_dir_all(&finished), &finished);
    for object in &objects {
        let place = finished.join(object.file_name().unwrap_or_default());
        // Who has it loaded keeps the old one.
        let beside = place.with_extension("new");
        check(fs::copy(object, &beside), &beside);
        check(fs::rename(&beside, &place), &place);
    }
}

/// A source that includes others, and compares what they declare with Rust's.
fn source(out: &Path, name: &str, includes: &[&str], build: Build) -> PathBuf {
    let source = out.join(name).with_extension("c");
    check(fs::write(&source, unit(includes, build)), &source);
    source
}

fn shared(out: &Path, source: &Path) -> PathBuf {
    let object = out.join(source.file_stem().unwrap_or_default()).with_extension("so");
    run(compiler().args(["-shared", "-Wl,-z,defs"]).arg(source).arg("-o").arg(&object));
    object
}

/// The same with a call at each access to memory. Linked without the sanitizer's own library.
fn interleaved(out: &Path, scheduler: &Path) -> PathBuf {
    let name = scheduler.file_stem().unwrap_or_default().to_string_lossy();
    let objects = [out.join(format!("{name}.o")), out.join("interleaved.o")];
    let object = out.join(format!("{name}-interleaved.so"));
    run(compiler().args(["-fsanitize=thread", "-c"]).arg(scheduler).arg("-o").arg(&objects[0]));
    run(compiler().args(["-c", ACCESSES, "-o"]).arg(&objects[1]));
    run(compiler().args(["-shared", "-Wl,-z,defs"]).args(&objects).arg("-o").arg(&object));
    object
}

fn compiler() -> Command {
    let mut compiler = hearth_build::compiler();
    compiler.args(["-fPIC", "-Wno-unused-parameter"]).args([format!("-I{BPF}"), format!("-I{BPF}/native")]);
    compiler
}

fn check<T>(result: std::io::Result<T>, path: &Path) {
    if let Err(error) = result {
        fail(&format!("{}: {error}", path.display()));
    }
}
