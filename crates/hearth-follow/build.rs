//! Compiles the library that programs preload into a shared object, which the crate embeds.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

const HINTS: &str = "../hearth-hints";

fn main() {
    println!("cargo::rerun-if-changed=preload");
    println!("cargo::rerun-if-changed={HINTS}/src");
    println!("cargo::rerun-if-changed={HINTS}/include");
    let Some(out) = env::var_os("OUT_DIR") else { fail("OUT_DIR is not set: build with cargo") };
    let mut sources = c_files(Path::new("preload"));
    sources.extend(c_files(&Path::new(HINTS).join("src")));
    compile(&sources, &Path::new(&out).join("libhearth-follow.so"));
}

fn c_files(folder: &Path) -> Vec<PathBuf> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => fail(&format!("cannot read {}: {error}", folder.display())),
    };
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    files.sort();
    files
}

/// Only what other libraries' calls are to reach is visible; what hearth-hints offers to programs is not.
fn compile(sources: &[PathBuf], object: &Path) {
    let mut build = cc::Build::new();
    #[expect(deprecated, reason = "what embeds it may be static; without this, cc would have it static, too")]
    let mut compile = build.opt_level(2).debug(false).static_flag(false).get_compiler().to_command();
    compile.args(["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-fPIC", "-shared"]);
    compile.args(["-fvisibility=hidden", "-pthread", "-Wl,-z,now", "-Wl,-soname,libhearth-follow.so", "-s"]);
    compile.arg(format!("-I{HINTS}/include")).arg(format!("-I{HINTS}/src"));
    compile.args(sources).arg("-ldl").arg("-o").arg(object);
    match compile.status() {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("the C compiler could not make libhearth-follow.so ({status})")),
        Err(error) => {
            fail(&format!("cannot run the C compiler ({error}); install one: apt-get install gcc libc6-dev"))
        }
    }
}

fn fail(message: &str) -> ! {
    eprintln!("hearth-follow: {message}");
    process::exit(1)
}
