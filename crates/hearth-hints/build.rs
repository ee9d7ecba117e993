//! Compiles the one implementation, which is in C.

fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=include");
    let files = std::fs::read_dir("src").expect("the folder of this crate's sources");
    let mut sources: Vec<_> = files.flatten().map(|file| file.path()).collect();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.sort();
    cc::Build::new()
        .files(sources)
        .std("c11")
        .flag("-Wall")
        .flag("-Wextra")
        .opt_level(2)
        .compile("hearth_hints");
}
