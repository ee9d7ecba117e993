//! A guest over the machine of the tests, and what was counted in it.

#![allow(dead_code)]

pub mod guest;

use guest::Setup;
use hearth_emulate::counts::{Region, Report, SCHEMA, Task};
use hearth_guest::{Guest, Mode, Output, available};
use std::fs;

/// Whether a guest can boot; if not, the reason is printed.
pub fn can_boot() -> bool {
    let available = available();
    match &available {
        Ok(()) => hearth_kernel_tests::ran(),
        Err(error) => hearth_kernel_tests::skipped(&error.to_string()),
    }
    available.is_ok()
}

/// Boots a guest over the machine of the tests: what the plugin wrote, and what the guest said in its section
/// `known`.
pub fn boot(mode: Mode, script: &str) -> (String, Vec<String>) {
    let (text, output) = boot_with(&Setup::new(mode), script, |guest| guest);
    let report = report(&text);
    assert_eq!((report.machine.as_str(), report.cycle_ps), ("known", 500));
    (text, output.section("known").unwrap().lines.clone())
}

/// Boots a guest with what `add` gives it: what the plugin wrote, and all that the guest said.
pub fn boot_with(setup: &Setup, script: &str, add: impl FnOnce(Guest) -> Guest) -> (String, Output) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("counts.json");
    let _turn = hearth_kernel_tests::turn();
    let output = add(setup.counted(&out)).run(script).unwrap();
    assert_eq!(output.status, 0, "{:?}", output.sections);
    assert_eq!(output.kernel_trouble(), Vec::<&str>::new());
    (fs::read_to_string(out).unwrap(), output)
}

/// What the plugin wrote, read.
pub fn report(text: &str) -> Report {
    let report: Report = serde_json::from_str(text).unwrap();
    assert_eq!(report.schema, SCHEMA);
    report
}

/// A region of what it wrote.
pub fn region(text: &str, name: &str) -> Region {
    let regions = report(text).regions;
    regions.into_iter().find(|region| region.name == name).unwrap()
}

/// The program of known references.
pub fn known(region: &Region) -> &Task {
    region.tasks.iter().find(|task| task.comm == "known").unwrap()
}
