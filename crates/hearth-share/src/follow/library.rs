//! The preloaded library as a file. The program's dynamic linker maps it executable, so it must lie
//! where that is allowed, and where nobody else may change it.

use rustix::fs::Mode;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{env, process, ptr};

/// Its content.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libhearth-follow.so"));
const INSTALLED: &str = "libhearth-follow.so";

/// After so long without use, the library of another version of Hearth is removed.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// No place for the library.
#[derive(Debug, thiserror::Error)]
#[error(
    "no folder of yours lets a library be run from it (tried {tried}); set XDG_CACHE_HOME to one that does"
)]
pub struct LibraryError {
    tried: String,
}

/// The library's path: beside the running binary if it is installed there, else in a cache of this
/// user's, written if need be.
pub fn path() -> Result<PathBuf, LibraryError> {
    if let Some(installed) = installed().filter(|path| is_ours(path)) {
        return Ok(installed);
    }
    let folders = cache_folders();
    folders.iter().find_map(|folder| cached(folder).ok()).ok_or_else(|| LibraryError {
        tried: folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", "),
    })
}

fn installed() -> Option<PathBuf> {
    Some(env::current_exe().ok()?.parent()?.join(INSTALLED))
}

fn cache_folders() -> Vec<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".cache"));
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    cache
        .filter(|path| path.is_absolute())
        .map(|path| path.join("hearth"))
        .into_iter()
        .chain(["/dev/shm", "/tmp"].map(|folder| PathBuf::from(format!("{folder}/hearth-lib-{uid}"))))
        .collect()
}

/// The file is named by its content, and its content is compared before use.
fn cached(folder: &Path) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if !is_private(folder)? {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let path = folder.join(format!("libhearth-follow-{:08x}.so", crc32fast::hash(LIBRARY)));
    if !is_ours(&path) {
        write(&path)?;
    }
    remove_old(folder, &path);
    can_run(&path).then_some(path).ok_or_else(|| io::ErrorKind::PermissionDenied.into())
}

/// A folder of this user's into which nobody else writes.
fn is_private(folder: &Path) -> io::Result<bool> {
    let found = fs::symlink_metadata(folder)?;
    let writers = Mode::WGRP.union(Mode::WOTH).bits();
    Ok(found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & writers == 0)
}

fn is_ours(path: &Path) -> bool {
    let Ok(found) = fs::symlink_metadata(path) else { return false };
    found.is_file()
        && found.len() == LIBRARY.len() as u64
        && fs::read(path).is_ok_and(|content| content == LIBRARY)
}

/// Appears whole under its name.
fn write(path: &Path) -> io::Result<()> {
    let beside = path.with_extension(format!("{}.new", process::id()));
    let mut options = File::options();
    let written = options
        .write(true)
        .create_new(true)
        .mode(0o755)
        .open(&beside)
        .and_then(|mut file| file.write_all(LIBRARY))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Marks ours as used, and removes what has not been for long.
fn remove_old(folder: &Path, ours: &Path) {
    let now = SystemTime::now();
    if let Ok(file) = File::open(ours) {
        let _ = file.set_modified(now);
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_library = name.to_string_lossy().starts_with("libhearth-follow-");
        let unused = entry.metadata().and_then(|found| found.modified()).ok();
        let age = unused.and_then(|modified| now.duration_since(modified).ok());
        if is_library && age.is_some_and(|age| age > KEPT) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether the file system lets its files be run.
fn can_run(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    // SAFETY: a new mapping at an address of the kernel's choice, which nothing looks into.
    unsafe {
        let flags = ProtFlags::READ | ProtFlags::EXEC;
        match mmap(ptr::null_mut(), LIBRARY.len(), flags, MapFlags::PRIVATE, &file, 0) {
            Ok(mapped) => munmap(mapped, LIBRARY.len()).is_ok(),
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_changed_library_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let path = cached(folder.path()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), LIBRARY);
        let mut content = LIBRARY.to_vec();
        content[100] ^= 1;
        fs::write(&path, content).unwrap();
        assert_eq!(fs::read(cached(folder.path()).unwrap()).unwrap(), LIBRARY);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_others_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(cached(folder.path()).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_libraries_long_unused_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        for (name, days) in [("libhearth-follow-1.so", 31), ("libhearth-follow-2.so", 29), ("other.so", 99)] {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(days * 24 * 3600)).unwrap();
        }
        cached(folder.path()).unwrap();
        assert!(!folder.path().join("libhearth-follow-1.so").exists());
        assert!(folder.path().join("libhearth-follow-2.so").exists());
        assert!(folder.path().join("other.so").exists());
    }
}
