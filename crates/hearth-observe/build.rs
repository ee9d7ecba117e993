//! Compiles what counts at tracepoints.

fn main() {
    hearth_bpf::build("bpf/observe/observe.bpf.c", "observe");
}
