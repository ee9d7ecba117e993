//! Compiles the scheduler of an example.

const FARTHEST: &str = "examples/farthest/farthest.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed={FARTHEST}");
    hearth_bpf::build(include_str!("examples/farthest/farthest.bpf.c"), "farthest");
}
