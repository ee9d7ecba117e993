//! The machines that come with the program.

use hearth_machine::{Frames, Machine, presets};

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
        for frames in [Frames::Shuffled, Frames::Coloured] {
            let machine = Machine { frames, ..Machine::load(name).expect(name) };
            let text = machine.to_toml();
            assert_eq!(
                Machine::parse(&text, "written").unwrap_or_else(|error| panic!("{error}\n{text}")),
                machine
            );
        }
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

/// What makes a variant of `t1-dual` is all in which it differs from it.
#[test]
fn variants_differ_from_their_machine_in_what_they_are_named_after() {
    let machine = Machine::load("t1-dual").expect("t1-dual");
    let variant = |name: &str, change: fn(&mut Machine)| {
        let wanted = Machine::load(name).expect(name);
        let mut varied =
            Machine { name: wanted.name.clone(), description: wanted.description.clone(), ..machine.clone() };
        change(&mut varied);
        assert_eq!(varied, wanted);
    };
    variant("t1-dual-512", |machine| machine.caches[2].size_bytes /= 2);
    variant("t1-dual-parted", |machine| machine.caches[2].is_parted = true);
    variant("t1-dual-free", |machine| {
        machine.caches[2].is_parted = true;
        machine.memory.bandwidth_bytes_per_s = 100_000_000_000_000;
    });
}
