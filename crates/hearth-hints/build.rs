//! Compiles the one implementation, which is in C.

const SOURCES: [&str; 10] =
    ["hints", "limits", "fragments", "homes", "pays", "samples", "trial", "register", "cpus", "place"];

fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=include");
    cc::Build::new()
        .files(SOURCES.map(|source| format!("src/{source}.c")))
        .std("c11")
        .flag("-Wall")
        .flag("-Wextra")
        .opt_level(2)
        .compile("hearth_hints");
}
