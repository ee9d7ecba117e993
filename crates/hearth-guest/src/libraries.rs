//! The shared libraries that a program of the host needs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::GuestError;

/// A shared library: its file here, and its place in a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// The file of the host.
    pub host: PathBuf,
    /// Where a guest's programs look for it.
    pub guest: PathBuf,
}

/// The libraries that the dynamic linker would load for a program, looking into `folders` first. None
/// for a program without shared libraries.
///
/// # Errors
/// A library that is missing.
pub fn libraries(program: &Path, folders: &[PathBuf]) -> Result<Vec<Library>, GuestError> {
    let mut ldd = Command::new("ldd");
    let search = folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>();
    let output = ldd
        .arg(program)
        .env("LD_LIBRARY_PATH", search.join(":"))
        .env("LC_ALL", "C")
        .output()
        .map_err(|source| GuestError::Start { program: "ldd", source })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut files = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.ends_with("=> not found") {
            let what = format!("a shared library of {} is missing", program.display());
            return Err(GuestError::Line { what, line: line.to_owned() });
        }
        files.extend(file(line).map(placed));
    }
    Ok(files)
}

/// `NAME => PATH (ADDRESS)`, or `PATH (ADDRESS)` for the dynamic linker itself.
fn file(line: &str) -> Option<PathBuf> {
    let after_arrow = line.rsplit(" => ").next()?;
    let path = after_arrow.rsplit_once(" (")?.0;
    path.starts_with('/').then(|| PathBuf::from(path))
}

fn placed(host: PathBuf) -> Library {
    let name = host.file_name().unwrap_or_default();
    let is_linker = name.to_string_lossy().starts_with("ld-linux");
    let folder = if is_linker { "/lib64" } else { "/lib/x86_64-linux-gnu" };
    Library { guest: Path::new(folder).join(name), host }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_ldd_name_files() {
        assert_eq!(file("libz.so.1 => /lib/libz.so.1 (0x00007f)"), Some("/lib/libz.so.1".into()));
        assert_eq!(file("/lib64/ld-linux-x86-64.so.2 (0x7f)"), Some("/lib64/ld-linux-x86-64.so.2".into()));
        assert_eq!(file("linux-vdso.so.1 (0x00007ffd)"), None);
        assert_eq!(file("not a dynamic executable"), None);
    }

    #[test]
    fn the_linker_has_a_folder_of_its_own() {
        let place = |host: &str| placed(host.into()).guest;
        assert_eq!(place("/usr/lib64/ld-linux-x86-64.so.2"), Path::new("/lib64/ld-linux-x86-64.so.2"));
        assert_eq!(place("/opt/x/libx.so"), Path::new("/lib/x86_64-linux-gnu/libx.so"));
    }
}
