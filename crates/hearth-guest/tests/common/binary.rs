//! The command as one file, for guests.

use std::env;
use std::path::{Path, PathBuf};

/// The static binary, or why there is none for a guest; one that was asked for and is missing is an
/// error of its own.
pub fn hearth() -> Result<PathBuf, String> {
    hearth_guest::available().map_err(|reason| reason.to_string())?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if let Some(path) = env::var_os("HEARTH_STATIC").filter(|path| !path.is_empty()) {
        let path = root.join(path);
        assert!(path.is_file(), "HEARTH_STATIC: {} is missing: run make static", path.display());
        return Ok(path);
    }
    let built = format!("target/static/{}-unknown-linux-gnu/release/hearth", env::consts::ARCH);
    let path = root.join(built);
    if path.is_file() { Ok(path) } else { Err(format!("{} is missing: run make static", path.display())) }
}
