//! The compiled scheduler's files: where they are, and what is in them.

use std::env;
use std::fs;
use std::io::Error;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Names their folder, where it is none of those that are looked into.
const VARIABLE: &str = "HEARTH_SCHEDULER";

/// Where they are, seen from a program's folder: that of a build, that of a test or an example of it, and that of
/// an installed program.
const FOLDERS: [&str; 3] = ["scheduler", "../scheduler", "../lib/hearth"];

/// A compiled scheduler. It is read once: a process has one scheduler, whatever is built meanwhile.
pub(super) struct Object {
    name: &'static str,
    bytes: OnceLock<Vec<u8>>,
}

impl Object {
    pub(super) const fn named(name: &'static str) -> Self {
        Self { name, bytes: OnceLock::new() }
    }

    pub(super) fn bytes(&self) -> Result<&[u8], Error> {
        if self.bytes.get().is_none() {
            let path = self.find()?;
            let read = fs::read(&path);
            let read =
                read.map_err(|error| Error::new(error.kind(), format!("{}: {error}", path.display())))?;
            // Whoever was first has read the same file.
            let _ = self.bytes.set(read);
        }
        Ok(self.bytes.get().map_or(&[], Vec::as_slice))
    }

    fn find(&self) -> Result<PathBuf, Error> {
        if let Some(folder) = env::var_os(VARIABLE).filter(|folder| !folder.is_empty()) {
            let path = Path::new(&folder).join(self.name);
            let mend = format!("{VARIABLE} names its folder; unset it, or name the folder that has it");
            return if path.is_file() { Ok(path) } else { Err(missing(&path, &mend)) };
        }
        let program = env::current_exe()?;
        let own = program.parent().unwrap_or(Path::new("/"));
        let places = FOLDERS.map(|folder| own.join(folder).join(self.name));
        let mend =
            format!("`make build` in Hearth's sources builds it, and {VARIABLE} names its folder elsewhere");
        let first = places[0].clone();
        places.into_iter().find(|path| path.is_file()).ok_or_else(|| missing(&first, &mend))
    }
}

fn missing(path: &Path, mend: &str) -> Error {
    Error::other(format!("the compiled scheduler {} is missing: {mend}", path.display()))
}
