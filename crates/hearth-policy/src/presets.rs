//! The policies that come with the program, and loading by name.

use hearth_machine::located;

use crate::{Policy, PolicyError};

macro_rules! preset {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../policies/", $name, ".toml")))
    };
}

const PRESETS: &[(&str, &str)] = &[
    preset!("standard"),
    preset!("light"),
    preset!("heavy"),
    preset!("complex"),
    preset!("attached"),
    preset!("quantum-10"),
    preset!("quantum-100"),
    preset!("unix"),
    preset!("bsd"),
    preset!("cluster"),
    preset!("cache"),
    preset!("both"),
    preset!("fair"),
    preset!("vanilla"),
    preset!("fixed"),
    preset!("fixed-long"),
    preset!("data-affinity"),
];

/// The policies that come with the program: name and TOML text, as in `policies/`.
pub fn presets() -> &'static [(&'static str, &'static str)] {
    PRESETS
}

impl Policy {
    /// Loads a preset by its name, or else the TOML file at that path.
    ///
    /// # Errors
    /// Neither a preset nor a readable file, or a file that [`Policy::parse`] refuses.
    pub fn load(path_or_preset: &str) -> Result<Policy, PolicyError> {
        if let Some((name, text)) = PRESETS.iter().find(|(name, _)| *name == path_or_preset) {
            return Policy::parse(text, &format!("policies/{name}.toml"));
        }
        let text = located::read_file(path_or_preset, "policy", PRESETS)?;
        Policy::parse(&text, path_or_preset)
    }
}
