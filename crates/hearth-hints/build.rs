//! Compiles the one implementation, which is in C.

fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=include");
    cc::Build::new()
        .files(["src/hints.c", "src/limits.c"])
        .std("c11")
        .flag("-Wall")
        .flag("-Wextra")
        .opt_level(2)
        .compile("hearth_hints");
}
