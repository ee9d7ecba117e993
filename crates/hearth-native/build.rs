//! Compiles the scheduler (`bpf/`) as a shared object, which the simulated kernel loads.

use std::path::PathBuf;

fn main() {
    let root = PathBuf::from("../../bpf");
    println!("cargo::rerun-if-changed={}", root.display());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("hearth.so");
    let mut command = cc::Build::new()
        .include(root.join("native"))
        .flag("-std=gnu11")
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Wno-unused-parameter")
        .pic(true)
        .opt_level(2)
        .get_compiler()
        .to_command();
    let status = command.arg("-shared").arg("-o").arg(&out).arg(root.join("hearth.bpf.c")).status();
    match status {
        Ok(status) if status.success() => {}
        _ => {
            println!(
                "cargo::error=the C compiler could not build bpf/hearth.bpf.c; on Debian: apt install gcc"
            );
            std::process::exit(1);
        }
    }
}
