//! Compiles BPF programs (`bpf/`) with clang, and generates the code that loads them: for build scripts.

use libbpf_cargo::SkeletonBuilder;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest clang whose BPF back end is known to build the programs.
const OLDEST_CLANG: u32 = 17;

/// For a build script: compiles a C source, whose includes are relative to the project's root, and
/// generates the code that loads it as `NAME.skel.rs` in the folder of build outputs. Ends the build
/// if that fails.
pub fn build(source: &str, name: &str) {
    let root = PathBuf::from("../..");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed={}", root.join("bpf").display());
    println!("cargo::rerun-if-env-changed=CLANG");
    if let Err(errors) = clang().and_then(|clang| compile(&root, &out, &clang, source, name)) {
        errors.lines().for_each(|error| println!("cargo::error={error}"));
        std::process::exit(1);
    }
}

fn compile(root: &Path, out: &Path, clang: &str, source: &str, name: &str) -> Result<(), String> {
    let file = out.join(format!("{name}.bpf.c"));
    std::fs::write(&file, source).map_err(|error| format!("{}: {error}", file.display()))?;
    SkeletonBuilder::new()
        .source(&file)
        .clang(clang)
        .clang_args([
            format!("-I{}", root.display()),
            format!("-I{}", root.join("bpf/linux").display()),
            format!("-I{}", root.join("bpf").display()),
            "-mcpu=v3".into(),
            "-Wall".into(),
            "-Wno-missing-declarations".into(),
            "-Wno-unused-function".into(),
        ])
        .build_and_generate(out.join(format!("{name}.skel.rs")))
        .map_err(|error| hearth_build::errors(&format!("{} does not build: {error:#}", file.display())))
}

/// The newest clang that is there: `$CLANG`, `clang-19`, `clang`, or another version by its number.
fn clang() -> Result<String, String> {
    if let Ok(named) = std::env::var("CLANG") {
        return match clang_version(&named) {
            Some(version) if version >= OLDEST_CLANG => Ok(named),
            Some(version) => {
                Err(format!("$CLANG is clang {version}; BPF programs need {OLDEST_CLANG} or newer"))
            }
            None => Err(format!("$CLANG is {named}, which is no clang; unset it or name one")),
        };
    }
    let numbered = (OLDEST_CLANG..=30).rev().map(|version| format!("clang-{version}"));
    ["clang-19".to_owned(), "clang".to_owned()]
        .into_iter()
        .chain(numbered)
        .find(|name| clang_version(name).is_some_and(|version| version >= OLDEST_CLANG))
        .ok_or_else(|| {
            format!("no clang {OLDEST_CLANG} or newer was found to build the BPF programs; on Debian: apt install clang-19")
        })
}

fn clang_version(name: &str) -> Option<u32> {
    let output = Command::new(name).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split("version ").nth(1)?.split('.').next()?.parse().ok()
}
