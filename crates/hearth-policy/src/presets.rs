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
    preset!("plain"),
    preset!("kernel"),
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
    /// Loads a preset by its name, perhaps with other numbers (`light:credit.time=60ms:saturation=none`), or else
    /// the TOML file at that path.
    ///
    /// # Errors
    /// Neither a preset nor a readable file, or one that [`Policy::parse`] refuses.
    pub fn load(path_or_preset: &str) -> Result<Policy, PolicyError> {
        if let Some((name, changes)) = path_or_preset.split_once(':')
            && let Some((_, text)) = PRESETS.iter().find(|(preset, _)| *preset == name)
        {
            let policy = Policy::parse(&changed(text, changes), path_or_preset)?;
            return Ok(Policy { name: path_or_preset.into(), ..policy });
        }
        if let Some((name, text)) = PRESETS.iter().find(|(name, _)| *name == path_or_preset) {
            return Policy::parse(text, &format!("policies/{name}.toml"));
        }
        let text = located::read_file(path_or_preset, "policy", PRESETS)?;
        Policy::parse(&text, path_or_preset)
    }
}

/// A preset's text with other values: `key=value`, joined by `:`. `none` takes a key away. What makes no policy is
/// found when the text is read.
fn changed(text: &str, changes: &str) -> String {
    // The presets are TOML: a test reads each.
    let mut table: toml::Table = text.parse().unwrap_or_default();
    for change in changes.split(':') {
        let (path, value) = change.split_once('=').unwrap_or((change, ""));
        let mut keys: Vec<&str> = path.split('.').collect();
        let last = keys.pop().unwrap_or_default();
        let empty = || toml::Value::Table(toml::Table::new());
        let inner = keys
            .into_iter()
            .try_fold(&mut table, |table, key| table.entry(key).or_insert_with(empty).as_table_mut());
        let Some(inner) = inner else {
            table.insert(path.into(), value.into());
            continue;
        };
        if value == "none" {
            inner.remove(last);
        } else {
            let number = value.parse::<f64>().map(toml::Value::Float).ok();
            let truth = value.parse::<bool>().map(toml::Value::Boolean).ok();
            inner.insert(last.into(), truth.or(number).unwrap_or_else(|| value.into()));
        }
    }
    table.to_string()
}
