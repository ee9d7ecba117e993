//! A difference between C and Rust stops the build, and the compiler's message says where it is. And each header of
//! the schedulers includes what it uses.

use hearth_abi::{Build, unit};
use std::fs;
use std::io::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the C compiler says of the native build with one file of `bpf/` changed: nothing if it compiles.
fn errors(file: &str, from: &str, to: &str) -> Result<String> {
    let bpf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    let copy = tempfile::tempdir()?;
    copy_folder(&bpf, copy.path())?;
    let changed = copy.path().join(file);
    let text = fs::read_to_string(&changed)?;
    assert!(text.contains(from), "{file} has no {from:?}");
    fs::write(&changed, text.replacen(from, to, 1))?;
    let source = copy.path().join("unit.c");
    fs::write(&source, unit(&["hearth.bpf.c"], Build::Native))?;
    compiled(&source, &copy.path().join("native"), &[])
}

/// What the C compiler calls an error in a source.
fn compiled(source: &Path, native: &Path, options: &[&str]) -> Result<String> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(compiler)
        .args(["-std=gnu11", "-fsyntax-only", "-Werror=implicit-function-declaration", "-I"])
        .arg(native)
        .args(options)
        .arg(source)
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = text.lines().filter(|line| line.contains("error:")).collect();
    assert_eq!(output.status.success(), errors.is_empty(), "{text}");
    Ok(errors.join("\n"))
}

/// The sources of the native build.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, target) = (entry.file_name(), to.join(entry.file_name()));
        match entry.file_type()?.is_dir() {
            true if ["native", "bpf", "papers"].iter().any(|&folder| name == folder) => {
                copy_folder(&entry.path(), &target)?;
            }
            true => {}
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

#[test]
fn both_sides_agree() {
    assert_eq!(errors("interface.h", "", "").unwrap(), "");
}

/// The headers of a folder, by name.
fn headers(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>>>()?.into_iter().map(|entry| entry.path());
    let mut headers: Vec<_> = entries.filter(|path| path.extension().is_some_and(|is| is == "h")).collect();
    headers.sort();
    Ok(headers)
}

#[test]
fn each_header_includes_what_it_uses() {
    let bpf = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("alone.c");
    let own = headers(&bpf).unwrap();
    let papers = headers(&bpf.join("papers")).unwrap();
    assert!(own.len() > 20 && papers.len() > 5);
    let alone = own.iter().map(|path| (path, "-UHEARTH_PAPERS"));
    for (header, option) in alone.chain(papers.iter().map(|path| (path, "-DHEARTH_PAPERS"))) {
        fs::write(&source, format!("#include \"{}\"\n", header.display())).unwrap();
        let include = format!("-I{}", bpf.display());
        let errors = compiled(&source, &bpf.join("native"), &[&include, option]).unwrap();
        assert_eq!(errors, "", "{} does not compile alone", header.display());
    }
}

#[test]
fn a_field_of_another_type_is_named() {
    let errors = errors("interface.h", "u64 quantum_ns;", "s64 quantum_ns;").unwrap();
    assert!(errors.contains("quantum_ns of struct hearth_policy is u64 in Rust"), "{errors}");
}

#[test]
fn fields_that_changed_places_are_named() {
    let errors = errors("interface.h", "u64 llc_ns;\n\tu64 node_ns;", "u64 node_ns;\n\tu64 llc_ns;").unwrap();
    assert!(errors.contains("llc_ns of struct hearth_policy is at byte"), "{errors}");
    assert!(errors.contains("node_ns of struct hearth_policy is at byte"), "{errors}");
}

#[test]
fn a_field_that_only_c_has_stops_the_build() {
    let errors = errors("interface.h", "u64 runs;", "u64 runs;\n\tu64 naps;").unwrap();
    assert!(errors.contains("moves of struct hearth_task is at byte"), "{errors}");
    assert!(errors.contains("a field is on one side only"), "{errors}");
}

#[test]
fn a_field_that_only_rust_has_is_named() {
    let errors = errors("interface.h", "u64 preempted;", "u64 preempted_;").unwrap();
    assert!(errors.contains("preempted"), "{errors}");
}

#[test]
fn a_callback_with_another_signature_is_named() {
    let errors = errors("native/vmlinux.h", "(*update_idle)(s32 cpu,", "(*update_idle)(u32 cpu,").unwrap();
    assert!(
        errors.contains("update_idle of struct sched_ext_ops is void (*)(s32, bool) in Rust"),
        "{errors}"
    );
}

#[test]
fn a_callback_that_is_not_written_as_it_is_called_is_named() {
    let errors =
        errors("hearth.bpf.c", "hearth_update_idle, s32 cpu,", "hearth_update_idle, u32 cpu,").unwrap();
    assert!(errors.contains("hearth_update_idle"), "{errors}");
}

#[test]
fn a_kfunc_with_another_signature_is_named() {
    let errors =
        errors("native/bpf/bpf_helpers.h", "bool (*dsq_move_to_local)", "s32 (*dsq_move_to_local)").unwrap();
    assert!(
        errors.contains("dsq_move_to_local of struct hearth_kernel is bool (*)(void *, u64) in Rust"),
        "{errors}"
    );
}

#[test]
fn a_constant_with_another_value_is_named() {
    let errors = errors("interface.h", "HEARTH_MAX_CPUS 512", "HEARTH_MAX_CPUS 256").unwrap();
    assert!(errors.contains("HEARTH_MAX_CPUS is 512 in Rust"), "{errors}");
    assert!(errors.contains("stats is struct hearth_stats[512] in Rust"), "{errors}");
}
