//! For build scripts: compiles C, and ends the build with the compiler's errors where that fails.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, process};

/// The folder of this build script's outputs.
pub fn out() -> PathBuf {
    env::var_os("OUT_DIR").map_or_else(|| fail("OUT_DIR is not set: build with cargo"), PathBuf::from)
}

/// The folder of finished programs: `target/debug` or another profile's.
pub fn profile() -> PathBuf {
    // OUT_DIR is PROFILE/build/PACKAGE-HASH/out.
    let out = out();
    out.ancestors().nth(3).map_or_else(|| fail("OUT_DIR has no folder of finished programs"), Path::to_owned)
}

/// The C sources in a folder, by name.
pub fn c_files(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let folder = folder.as_ref();
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|error| fail(&format!("cannot read {}: {error}", folder.display())));
    let files = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|is| is == "c")).collect();
    files.sort();
    files
}

/// The C compiler, as all of Hearth's C is compiled.
pub fn compiler() -> Command {
    let mut build = cc::Build::new();
    #[expect(
        deprecated,
        reason = "for a static program cc would have everything static, shared objects, too"
    )]
    let mut compiler = build.opt_level(2).debug(false).static_flag(false).get_compiler().to_command();
    compiler.args(["-std=gnu11", "-Wall", "-Wextra"]);
    compiler
}

/// Runs a compiler; what it says is shown, and what it calls errors ends the build.
pub fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| {
        let compiler = command.get_program().display();
        fail(&format!(
            "the C compiler {compiler} does not run: {error}; on Debian: apt install gcc libc6-dev"
        ))
    });
    let text = String::from_utf8_lossy(&output.stderr);
    eprint!("{text}");
    if !output.status.success() {
        fail(&errors(&format!("{command:?} failed:\n{text}")));
    }
}

/// The errors in what a compiler has printed, a line each; all of it if no line is one.
pub fn errors(printed: &str) -> String {
    let errors: Vec<&str> = printed.lines().filter(|line| line.contains("error:")).collect();
    if errors.is_empty() { printed.to_owned() } else { errors.join("\n") }
}

/// Ends the build.
pub fn fail(message: &str) -> ! {
    message.lines().for_each(|line| println!("cargo::error={line}"));
    process::exit(1)
}
