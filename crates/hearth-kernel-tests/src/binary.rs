//! The command, for guests.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Names another build of the command than that of the tests' own profile.
const VARIABLE: &str = "HEARTH_PROGRAM";

/// The command that was built beside the tests, or why there is none for a guest.
///
/// # Panics
/// One that was asked for is missing, or it was built before the scheduler was changed: it would be another that is
/// tested.
pub fn hearth() -> Result<PathBuf, String> {
    hearth_guest::available().map_err(|reason| reason.to_string())?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        let path = root.join(path);
        assert!(path.is_file(), "{VARIABLE}: {} is missing", path.display());
        return Ok(path);
    }
    let own = env::current_exe().map_err(|error| error.to_string())?;
    let path = own.ancestors().nth(2).unwrap_or(Path::new("/")).join("hearth");
    if !path.is_file() {
        return Err(format!("{} is missing: cargo build -p hearth", path.display()));
    }
    let newest = newest(&root.join("bpf"));
    assert!(changed(&path) >= newest, "{} is older than bpf/: cargo build -p hearth", path.display());
    Ok(stripped(&path))
}

/// Without what a debugger needs: a guest unpacks all that it gets. Kept beside the original.
fn stripped(path: &Path) -> PathBuf {
    let small = path.with_extension("stripped");
    if changed(&small) < changed(path) {
        // Tests of one process do so at the same time.
        let (process, thread) = (std::process::id(), std::thread::current().id());
        let new = path.with_extension(format!("new-{process}-{thread:?}"));
        let status = Command::new("strip").arg("-o").arg(&new).arg(path).status().unwrap();
        assert!(status.success(), "strip {}: {status}", path.display());
        fs::rename(&new, &small).unwrap();
    }
    small
}

fn changed(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// When a file of a folder was last changed.
fn newest(folder: &Path) -> SystemTime {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    files
        .map(|path| if path.is_dir() { newest(&path) } else { changed(&path) })
        .max()
        .unwrap_or(SystemTime::UNIX_EPOCH)
}
