//! Compiles the scheduler (`bpf/`) as shared objects, which a kernel of ours loads.

use hearth_abi::{Build, unit};
use hearth_build::{fail, out, profile, run};
use std::fs;
use std::path::Path;
use std::process::Command;

const BPF: &str = "../../bpf";
const SOURCES: [&str; 2] = ["hearth.bpf.c", "inspect.h"];
const BASELINE: &str = "baseline/kernel.c";
const ACCESSES: &str = "src/interleaved.c";

fn main() {
    println!("cargo::rerun-if-changed={BPF}");
    println!("cargo::rerun-if-changed={ACCESSES}");
    let (out, finished) = (out(), profile().join("scheduler"));
    let scheduler = out.join("hearth.c");
    check(fs::write(&scheduler, unit(&SOURCES, Build::Native)), &scheduler);
    let object = out.join("hearth.so");
    run(compiler().args(["-shared", "-Wl,-z,defs"]).arg(&scheduler).arg("-o").arg(&object));
    let interleaved = interleaved(&out, &scheduler);
    let source = out.join("kernel.c");
    check(fs::write(&source, unit(&[BASELINE], Build::Baseline)), &source);
    let baseline = out.join("kernel.so");
    run(compiler().args(["-shared", "-Wl,-z,defs"]).arg(&source).arg("-o").arg(&baseline));
    check(fs::create_dir_all(&finished), &finished);
    for object in [&object, &interleaved, &baseline] {
        let place = finished.join(object.file_name().unwrap_or_default());
        // Who has it loaded keeps the old one.
        let beside = place.with_extension("new");
        check(fs::copy(object, &beside), &beside);
        check(fs::rename(&beside, &place), &place);
    }
}

/// The same with a call at each access to memory. Linked without the sanitizer's own library.
fn interleaved(out: &Path, scheduler: &Path) -> std::path::PathBuf {
    let objects = [out.join("hearth.o"), out.join("interleaved.o")];
    let object = out.join("hearth-interleaved.so");
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
