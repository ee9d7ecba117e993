//! Compiles the scheduler for the kernel, with what compares it with Rust.

use hearth_seam::Build;

fn main() {
    hearth_bpf::build(&hearth_seam::unit(&["bpf/hearth.bpf.c"], Build::Bpf), "hearth");
}
