//! The shared libraries that a program of the host needs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::GuestError;

/// The files that the dynamic linker would load for a program, looking into `folders` first. None
/// for a program without shared libraries.
pub(crate) fn of(program: &Path, folders: &[PathBuf]) -> Result<Vec<PathBuf>, GuestError> {
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
        files.extend(library(line));
    }
    Ok(files)
}

/// `NAME => PATH (ADDRESS)`, or `PATH (ADDRESS)` for the dynamic linker itself.
fn library(line: &str) -> Option<PathBuf> {
    let after_arrow = line.rsplit(" => ").next()?;
    let path = after_arrow.rsplit_once(" (")?.0;
    path.starts_with('/').then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_ldd_name_files() {
        assert_eq!(library("libz.so.1 => /lib/libz.so.1 (0x00007f)"), Some("/lib/libz.so.1".into()));
        assert_eq!(library("/lib64/ld-linux-x86-64.so.2 (0x7f)"), Some("/lib64/ld-linux-x86-64.so.2".into()));
        assert_eq!(library("linux-vdso.so.1 (0x00007ffd)"), None);
        assert_eq!(library("not a dynamic executable"), None);
    }
}
