//! Compiles the scheduler for the kernel.

fn main() {
    hearth_bpf::build("bpf/hearth.bpf.c", "hearth");
}
