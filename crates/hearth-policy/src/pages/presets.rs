//! The page policies that come with the program, and loading by name.

use hearth_machine::located;

use super::PagePolicy;
use crate::PolicyError;

macro_rules! preset {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../policies/pages/", $name, ".toml")))
    };
}

/// The seven of table 6 in its order, then what the paper's kernel did, then today.
const PRESETS: &[(&str, &str)] = &[
    preset!("none"),
    preset!("post-facto"),
    preset!("competitive"),
    preset!("single-cache"),
    preset!("single-tlb"),
    preset!("freeze"),
    preset!("hybrid"),
    preset!("dash"),
    preset!("linux"),
];

/// The page policies that come with the program: name and TOML text, as in `policies/pages/`.
pub fn page_presets() -> &'static [(&'static str, &'static str)] {
    PRESETS
}

pub(super) fn load(path_or_preset: &str) -> Result<PagePolicy, PolicyError> {
    if let Some((name, text)) = PRESETS.iter().find(|(name, _)| *name == path_or_preset) {
        return Ok(PagePolicy::parse(text, &format!("policies/pages/{name}.toml"))?);
    }
    let text = located::read_file(path_or_preset, "page policy", PRESETS)?;
    Ok(PagePolicy::parse(&text, path_or_preset)?)
}
