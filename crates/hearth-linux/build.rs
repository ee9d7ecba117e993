//! Compiles the scheduler for the kernel, and the snapshot, each with what compares it with Rust.

use hearth_abi::{Build, unit};

fn main() {
    hearth_bpf::build(&unit(&["bpf/hearth.bpf.c"], Build::Bpf), "hearth");
    hearth_bpf::build(&unit(&["bpf/snapshot.bpf.c"], Build::Snapshot), "snapshot");
}
