//! The machines that come with the program, and loading by name.

use crate::{Machine, MachineError};

macro_rules! preset {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../machines/", $name, ".toml")))
    };
}

const PRESETS: &[(&str, &str)] = &[
    preset!("sgi-4d340"),
    preset!("dash-16"),
    preset!("xeon-smp2"),
    preset!("t1-dual"),
    preset!("t1-dual-parted"),
    preset!("t1-dual-free"),
    preset!("t1-dual-512"),
    preset!("desktop-8"),
    preset!("server-2s"),
    preset!("chiplet-64"),
];

/// The machines that come with the program: name and TOML text, as in `machines/`.
pub fn presets() -> &'static [(&'static str, &'static str)] {
    PRESETS
}

impl Machine {
    /// Loads a preset by its name, or else the TOML file at that path.
    ///
    /// # Errors
    /// Neither a preset nor a readable file, or a file that [`Machine::parse`] refuses.
    pub fn load(path_or_preset: &str) -> Result<Machine, MachineError> {
        if let Some((name, text)) = PRESETS.iter().find(|(name, _)| *name == path_or_preset) {
            return Machine::parse(text, &format!("machines/{name}.toml"));
        }
        let text = crate::located::read_file(path_or_preset, "machine", PRESETS)?;
        Machine::parse(&text, path_or_preset)
    }
}
