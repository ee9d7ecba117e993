//! Compiles the scheduler for the kernel, and the snapshot, each with what compares it with Rust; and the scheduler of
//! an example.

use hearth_abi::{Build, unit};

const FARTHEST: &str = "examples/farthest/farthest.bpf.c";

fn main() {
    hearth_bpf::build(&unit(&["bpf/hearth.bpf.c"], Build::Bpf), "hearth");
    hearth_bpf::build(&unit(&["bpf/snapshot.bpf.c"], Build::Snapshot), "snapshot");
    println!("cargo::rerun-if-changed={FARTHEST}");
    hearth_bpf::build(include_str!("examples/farthest/farthest.bpf.c"), "farthest");
}
