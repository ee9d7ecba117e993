//! Compiles what counts at tracepoints.

fn main() {
    for name in ["observe", "neighbours"] {
        hearth_bpf::build(&format!("#include \"bpf/observe/{name}.bpf.c\"\n"), name);
    }
}
