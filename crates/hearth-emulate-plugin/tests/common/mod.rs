//! A guest over the machine of the tests, and what was counted in it.

#[path = "../../../hearth-guest/tests/common/outcome.rs"]
mod outcome;

use hearth_emulate::counts::{Region, Report, Task};
use hearth_guest::{Guest, Kernel, Mode, available};
use std::path::PathBuf;
use std::{env, fs};

const KNOWN: &str = concat!(env!("OUT_DIR"), "/known");
pub const MACHINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machine.toml");

/// The library that cargo built for this test.
pub fn plugin() -> PathBuf {
    let folder = env::current_exe().unwrap().parent().unwrap().to_owned();
    folder.join("libhearth_emulate_plugin.so")
}

/// Whether a guest can boot; if not, the reason is printed.
pub fn can_boot() -> bool {
    let available = available();
    match &available {
        Ok(()) => outcome::ran(),
        Err(error) => outcome::skipped(&error.to_string()),
    }
    available.is_ok()
}

/// Boots a guest over the machine of the tests: what the plugin wrote, and what the guest said in its section
/// `known`.
pub fn boot(mode: Mode, script: &str) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("counts.json");
    let told = if mode == Mode::Timed { "timed" } else { "counts" };
    let arguments = [
        ("machine", MACHINE.to_owned()),
        ("out", out.display().to_string()),
        ("node_mib", "512:512".to_owned()),
        ("mode", told.to_owned()),
    ];
    let guest = Guest::new(Kernel::Pinned)
        .mode(mode)
        .memory_mib(1024)
        .cpu_feature("-erms")
        .cpu_feature("-fsrm")
        .file(KNOWN, "/bin/known")
        .plugin(&plugin(), &arguments);
    let output = guest.run(script).unwrap();
    assert_eq!(output.status, 0, "{:?}", output.sections);
    assert_eq!(output.kernel_trouble(), Vec::<&str>::new());
    (fs::read_to_string(out).unwrap(), output.section("known").unwrap().lines.clone())
}

/// A region of what the plugin wrote.
pub fn region(report: &str, name: &str) -> Region {
    let report: Report = serde_json::from_str(report).unwrap();
    assert_eq!((report.schema, report.machine.as_str(), report.cycle_ps), (1, "known", 500));
    report.regions.into_iter().find(|region| region.name == name).unwrap()
}

/// The program of known references.
pub fn known(region: &Region) -> &Task {
    region.tasks.iter().find(|task| task.comm == "known").unwrap()
}
