//! Compiles the schedulers for the kernel, and the snapshot, each with what compares it with Rust.

use hearth_abi::{Build, unit};

fn main() {
    for name in ["hearth", "papers"] {
        hearth_bpf::build(&unit(&[&format!("bpf/{name}.bpf.c")], Build::Bpf), name);
    }
    hearth_bpf::build(&unit(&["bpf/snapshot.bpf.c"], Build::Snapshot), "snapshot");
}
