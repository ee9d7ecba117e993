//! The machines that come with the program.

use hearth_machine::{Machine, presets};

#[test]
fn every_preset_loads_under_its_own_name() {
    for (name, _) in presets() {
        let machine = Machine::load(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(machine.name, *name);
        assert!(!machine.description.is_empty());
    }
}

#[test]
fn every_preset_survives_being_written_and_read() {
    for (name, _) in presets() {
        let machine = Machine::load(name).expect(name);
        let text = machine.to_toml();
        assert_eq!(
            Machine::parse(&text, "written").unwrap_or_else(|error| panic!("{error}\n{text}")),
            machine
        );
    }
}

#[test]
fn every_file_of_the_machines_folder_is_a_preset() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("machines/")
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    let mut names: Vec<&str> = presets().iter().map(|(name, _)| *name).collect();
    files.sort_unstable();
    names.sort_unstable();
    assert_eq!(files, names);
}
