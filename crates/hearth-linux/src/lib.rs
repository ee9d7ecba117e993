//! The real kernel as a host: loads the scheduler (`bpf/`) as a sched_ext program.

#[allow(warnings, clippy::all)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/hearth.skel.rs"));
}
