//! C that compiles only if C and Rust agree.

use crate::declare::{CType, Constant, Field, Layout};
use crate::{
    CELLS, Cell, CpuStats, DUMP_BYTES, Ended, FALSE_WAITS, FalseWait, Fragment, Kfuncs, MAX_CPUS,
    MAX_FRAGMENTS, Ops, PLANS, PlanBuffer, Policy, SHAPES, Sample, Shape, Task, Topology, interface, kernel,
    queues, snapshot,
};
use std::fmt::Write;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// The shared object that a kernel of ours loads, against `bpf/native/`.
    Native,
    /// The baseline, which a kernel of ours loads in its place (`bpf/baseline/`).
    Baseline,
    /// The BPF object, against the real kernel's types.
    Bpf,
    /// The BPF object beside it that tells what tasks do.
    Snapshot,
}

/// A source that includes these files, and then asserts that what they have declared is what Rust has. The
/// compiler's message for a difference names the struct and the field.
pub fn unit(sources: &[&str], build: Build) -> String {
    let mut text = "#include \"vmlinux.h\"\n".to_owned();
    if matches!(build, Build::Native | Build::Baseline) {
        Ops::layout()
            .fields
            .iter()
            .filter(|field| field.is_function())
            .for_each(|field| declare(&mut text, field));
    }
    sources.iter().for_each(|source| text += &format!("#include \"{source}\"\n"));
    layouts(build).iter().for_each(|layout| compare_layout(&mut text, layout));
    constants(build).iter().for_each(|constant| compare_constant(&mut text, constant));
    globals(build).iter().for_each(|(name, c_type)| compare_global(&mut text, name, c_type));
    text
}

fn layouts(build: Build) -> Vec<Layout> {
    use interface::{Decision, Registration, Target};
    use kernel::{CpuMask, CpuReleaseArgs, DumpContext, ExitInfo, InitTaskArgs, TaskStruct};
    if build == Build::Snapshot {
        return vec![Sample::layout(), Task::layout()];
    }
    let of_the_kernel = || {
        vec![
            CpuMask::layout(),
            TaskStruct::layout(),
            InitTaskArgs::layout(),
            CpuReleaseArgs::layout(),
            DumpContext::layout(),
            ExitInfo::layout(),
            Ops::layout(),
            Kfuncs::<()>::layout(),
        ]
    };
    if build == Build::Baseline {
        let own = vec![Policy::layout(), Topology::layout(), CpuStats::layout(), Shape::layout()];
        return own.into_iter().chain(of_the_kernel()).collect();
    }
    let mut layouts =
        vec![Policy::layout(), Topology::layout(), CpuStats::layout(), Decision::layout(), Task::layout()];
    layouts.extend([
        Registration::layout(),
        Ended::layout(),
        FalseWait::layout(),
        Fragment::layout(),
        Shape::layout(),
        Target::layout(),
        PlanBuffer::layout(),
        Cell::layout(),
    ]);
    if build == Build::Native {
        layouts.extend(of_the_kernel());
    }
    layouts
}

fn constants(build: Build) -> Vec<Constant> {
    if build == Build::Snapshot {
        return snapshot::all();
    }
    if build == Build::Baseline {
        let is_shared = |constant: &Constant| constant.name.starts_with("HEARTH_");
        return interface::all().into_iter().filter(is_shared).chain(kernel::all()).collect();
    }
    let real = if build == Build::Bpf { kernel::of_the_real_kernel() } else { Vec::new() };
    interface::all().into_iter().chain(queues::all()).chain(kernel::all()).chain(real).collect()
}

/// What hosts find by name.
fn globals(build: Build) -> Vec<(&'static str, String)> {
    if build == Build::Snapshot {
        return vec![("is_partial", bool::c()), ("*task_ctxs.value", Task::c())];
    }
    let mut globals = vec![
        ("policy", Policy::c()),
        ("topology", Topology::c()),
        ("stats", <[CpuStats; MAX_CPUS]>::c()),
        ("shapes", <[Shape; SHAPES]>::c()),
    ];
    let called = [("hearth_ops", Ops::c()), ("hearth_kernel", Kfuncs::<()>::c())];
    if build == Build::Baseline {
        globals.extend(called);
        return globals;
    }
    globals.extend([
        ("watchdog_ms", u32::c()),
        ("stalls", bool::c()),
        ("plans", <[PlanBuffer; PLANS]>::c()),
        ("published", u64::c()),
        ("cell_ctxs", <[Cell; CELLS]>::c()),
        ("fragments", <[Fragment; MAX_FRAGMENTS]>::c()),
        ("fragments_refused", u64::c()),
        ("fragments_are_used", bool::c()),
        ("tracing", u32::c()),
        ("traced_pid", i32::c()),
        ("decisions_lost", u64::c()),
        ("exited", Ended::c()),
        ("exit_dump", <[u8; DUMP_BYTES]>::c()),
        ("false_waits.last", <[FalseWait; FALSE_WAITS]>::c()),
        ("*task_ctxs.value", Task::c()),
    ]);
    if build == Build::Native {
        globals.extend(called);
    }
    globals
}

/// Declares the function that the scheduler has for a callback, so that it is written as it is called.
fn declare(text: &mut String, callback: &Field) {
    let path = callback.path;
    let _ = writeln!(text, "__typeof__(*((struct sched_ext_ops *)0)->{path}) hearth_{path};");
}

fn compare_layout(text: &mut String, layout: &Layout) {
    let Layout { name, size, fields } = layout;
    for field in fields {
        let (path, offset, c_type) = (field.path, field.offset, &field.c_type);
        let of = format!("{path} of struct {name}");
        assert(
            text,
            &format!("__builtin_offsetof(struct {name}, {path}) == {offset}"),
            &format!("{of} is at byte {offset} in Rust"),
        );
        assert(
            text,
            &same_type(&format!("((struct {name} *)0)->{path}"), c_type),
            &format!("{of} is {c_type} in Rust"),
        );
    }
    assert(
        text,
        &format!("sizeof(struct {name}) == {size}"),
        &format!("struct {name} has {size} bytes in Rust; a field is on one side only"),
    );
}

fn compare_constant(text: &mut String, Constant { name, value }: &Constant) {
    assert(text, &format!("(u64)({name}) == {value}ull"), &format!("{name} is {value} in Rust"));
}

fn compare_global(text: &mut String, name: &str, c_type: &str) {
    assert(text, &same_type(name, c_type), &format!("{name} is {c_type} in Rust"));
}

fn same_type(expression: &str, c_type: &str) -> String {
    format!("__builtin_types_compatible_p(__typeof__({expression}), {c_type})")
}

fn assert(text: &mut String, condition: &str, difference: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "_Static_assert({condition},\n\t\"{difference}: see crates/hearth-abi\");");
}
