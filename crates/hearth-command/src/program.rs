//! Where the other programs of Hearth are.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program by its name: beside this one, else on PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    // Never a path: what is typed is a name.
    if name.contains('/') {
        return None;
    }
    let beside = env::current_exe().ok().and_then(|own| Some(own.parent()?.to_owned()));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(env::split_paths(&path));
    folders.map(|folder| folder.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_no_files_by_path() {
        assert!(find("sh").is_some_and(|path| path.ends_with("sh")));
        assert_eq!(find("/bin/sh"), None);
        assert_eq!(find("no-such-program-of-hearth"), None);
    }
}
