//! Compiles what counts at tracepoints.

fn main() {
    hearth_bpf::build("#include \"bpf/observe/observe.bpf.c\"\n", "observe");
}
