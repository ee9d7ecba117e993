//! The guest's first file system: a cpio archive, not compressed, because unpacking would be
//! emulated.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cpio::newc::{Builder, trailer};

use crate::{GuestError, programs};

const INIT: &str = include_str!("init.sh");
/// The script that init runs.
pub(crate) const SCRIPT: &str = "script";
/// The script that goes on where that one has paused.
pub(crate) const REST: &str = "rest";
pub(crate) const BUSYBOX: &str = "/bin/busybox";
const FOLDERS: [&str; 8] = ["bin", "dev", "proc", "root", "run", "sys", "tmp", "var"];

const FOLDER: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;

/// Writes an archive with the guest's own files, from which it boots.
pub(crate) fn write_own(archive: &Path) -> Result<(), GuestError> {
    let mut contents = read(&own_files())?;
    contents.insert("init".to_owned(), INIT.as_bytes().to_vec());
    write(archive, &contents)
}

/// Writes an archive with a script as `name`, and `files`: from a path in the guest to one of the host.
pub(crate) fn write_given(
    archive: &Path,
    name: &str,
    script: &str,
    files: &BTreeMap<PathBuf, PathBuf>,
) -> Result<(), GuestError> {
    let mut contents = read(files)?;
    contents.insert(name.to_owned(), script.as_bytes().to_vec());
    write(archive, &contents)
}

/// Writes an archive with all of it.
pub(crate) fn write_all(
    archive: &Path,
    script: &str,
    files: &BTreeMap<PathBuf, PathBuf>,
) -> Result<(), GuestError> {
    let mut contents = read(&own_files())?;
    contents.extend(read(files)?);
    contents.insert("init".to_owned(), INIT.as_bytes().to_vec());
    contents.insert(SCRIPT.to_owned(), script.as_bytes().to_vec());
    write(archive, &contents)
}

fn read(files: &BTreeMap<PathBuf, PathBuf>) -> Result<BTreeMap<String, Vec<u8>>, GuestError> {
    let read = |(guest, host): (&PathBuf, &PathBuf)| {
        Ok((relative(guest), fs::read(host).map_err(GuestError::file(host))?))
    };
    files.iter().map(read).collect()
}

fn write(archive: &Path, contents: &BTreeMap<String, Vec<u8>>) -> Result<(), GuestError> {
    let written = File::create(archive).and_then(|file| write_archive(io::BufWriter::new(file), contents));
    written.map_err(GuestError::file(archive))
}

fn own_files() -> BTreeMap<PathBuf, PathBuf> {
    BTreeMap::from([
        (PathBuf::from("/bin/busybox"), PathBuf::from(BUSYBOX)),
        (PathBuf::from("/bin/bench"), programs::bench()),
        (PathBuf::from("/bin/tasks"), programs::tasks()),
        (PathBuf::from("/bin/hearth-region"), programs::region()),
        (PathBuf::from("/bin/hearth-load"), programs::load()),
    ])
}

fn relative(guest: &Path) -> String {
    guest.to_string_lossy().trim_start_matches('/').to_owned()
}

fn write_archive(mut out: impl Write, contents: &BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    let mut folders: Vec<String> = FOLDERS.map(str::to_owned).to_vec();
    for name in contents.keys() {
        let parents = Path::new(name).ancestors().skip(1);
        folders.extend(parents.map(|parent| parent.to_string_lossy().into_owned()));
    }
    folders.retain(|folder| !folder.is_empty());
    folders.sort();
    folders.dedup();
    for folder in &folders {
        out = Builder::new(folder).mode(FOLDER).write(out, 0).finish()?;
    }
    for (name, bytes) in contents {
        let size =
            u32::try_from(bytes.len()).map_err(|_| io::Error::other(format!("{name} is over 4 GiB")))?;
        let mut entry = Builder::new(name).mode(EXECUTABLE).write(out, size);
        entry.write_all(bytes)?;
        out = entry.finish()?;
    }
    trailer(out)?.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_folders_of_its_files_before_them() {
        let contents = BTreeMap::from([("usr/lib/x".to_owned(), b"text".to_vec())]);
        let mut bytes = Vec::new();
        write_archive(&mut bytes, &contents).unwrap();
        let mut names = Vec::new();
        let mut rest = bytes.as_slice();
        loop {
            let entry = cpio::newc::Reader::new(rest).unwrap();
            if entry.entry().is_trailer() {
                break;
            }
            names.push(entry.entry().name().to_owned());
            rest = entry.finish().unwrap();
        }
        let place = |name: &str| names.iter().position(|other| other == name).unwrap();
        assert!(place("usr") < place("usr/lib") && place("usr/lib") < place("usr/lib/x"));
        assert!(names.contains(&"proc".to_owned()));
    }
}
