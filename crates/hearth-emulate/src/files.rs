//! What a guest gets of this host: programs with their libraries and interpreters, files, folders.
//! Everything is in the guest where it is on the host, but for libraries, which are where a guest's
//! dynamic linker looks.

use crate::EmulateError;
use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where a program is looked for if `PATH` says nothing.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
/// A first line that is longer names no interpreter.
const LONGEST_FIRST_LINE: u64 = 256;
/// Where the configuration of a guest's kernel is; the script gives it the kernel's version.
pub(crate) const KERNEL_CONFIG: &str = "/boot/config";
/// Interpreters of interpreters, at most, as the kernel has it.
const MOST_INTERPRETERS: usize = 4;

/// Files of the host by their place in the guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    by_place: BTreeMap<PathBuf, PathBuf>,
}

impl Files {
    /// Adds a program by its name in `PATH` or by its file, and returns its place.
    ///
    /// # Errors
    /// No such program, or one whose libraries or interpreter are missing.
    pub fn add_program(&mut self, name: &str) -> Result<PathBuf, EmulateError> {
        let path = find(name).ok_or_else(|| EmulateError::NoProgram(name.to_owned()))?;
        self.by_place.insert(path.clone(), path.clone());
        self.add_needs_of(&path, MOST_INTERPRETERS)?;
        Ok(path)
    }

    /// Adds a program's libraries, or a script's interpreter with what that needs.
    fn add_needs_of(&mut self, path: &Path, interpreters: usize) -> Result<(), EmulateError> {
        let missing = |what: String| EmulateError::Program { program: path.to_owned(), what };
        let Some(words) = interpreter(path)? else {
            let libraries = hearth_guest::libraries(path, &[]).map_err(|error| missing(error.to_string()))?;
            self.by_place.extend(libraries.into_iter().map(|library| (library.guest, library.host)));
            return Ok(());
        };
        if interpreters == 0 {
            return Err(missing("its interpreter is a script of a script of a script".into()));
        }
        for word in &words {
            let found = find(word).ok_or_else(|| missing(format!("its interpreter {word} is not here")))?;
            self.by_place.insert(found.clone(), found.clone());
            self.add_needs_of(&found, interpreters - 1)?;
        }
        Ok(())
    }

    /// Adds a file, or all files in a folder and in its folders, at a place of the guest; without one,
    /// where it is here. What can be executed brings its libraries.
    ///
    /// # Errors
    /// A file that is not there or cannot be read.
    pub fn add(&mut self, host: &Path, guest: Option<&Path>) -> Result<(), EmulateError> {
        let host = std::path::absolute(host).map_err(at(host))?;
        let guest = guest.map_or_else(|| host.clone(), |guest| Path::new("/").join(guest));
        let about = fs::metadata(&host).map_err(at(&host))?;
        if about.is_dir() {
            let entries = fs::read_dir(&host).map_err(at(&host))?;
            for entry in entries {
                let name = entry.map_err(at(&host))?.file_name();
                // A link that leads nowhere is nothing that a program could have used.
                if host.join(&name).exists() {
                    self.add(&host.join(&name), Some(&guest.join(&name)))?;
                }
            }
        } else if about.is_file() {
            if is_executable(&about) {
                // What cannot run here is no less a file.
                let _ = self.add_needs_of(&host, MOST_INTERPRETERS);
            }
            self.by_place.insert(guest, host);
        }
        Ok(())
    }

    /// Adds the configuration of the guest's kernel, which many programs that load BPF read, if it is here.
    pub fn add_kernel_config(&mut self) {
        let config = hearth_guest::kernel_config();
        self.by_place.extend(config.map(|config| (PathBuf::from(KERNEL_CONFIG), config)));
    }

    /// Whether the configuration of the guest's kernel comes along.
    pub fn has_kernel_config(&self) -> bool {
        self.by_place.contains_key(Path::new(KERNEL_CONFIG))
    }

    /// Each place in the guest with the host's file.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.by_place.iter().map(|(guest, host)| (guest.as_path(), host.as_path()))
    }

    /// Size of all.
    pub fn bytes(&self) -> u64 {
        let size = |host: &PathBuf| fs::metadata(host).map_or(0, |about| about.len());
        self.by_place.values().map(size).sum()
    }
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> EmulateError {
    let path = path.to_owned();
    move |error| EmulateError::File { path, error }
}

/// The file of a program, as a shell finds it.
fn find(name: &str) -> Option<PathBuf> {
    let is_program =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|about| about.is_file() && is_executable(&about));
    if name.contains('/') {
        return std::path::absolute(name).ok().filter(is_program);
    }
    let folders = env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into());
    env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| !name.is_empty() && is_program(path))
}

fn is_executable(about: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    about.permissions().mode() & 0o111 != 0
}

/// The programs that a script's first line names, `env` with the program that it is to find; nothing
/// for what is no script.
fn interpreter(path: &Path) -> Result<Option<Vec<String>>, EmulateError> {
    let mut start = Vec::new();
    let file = File::open(path).map_err(at(path))?;
    file.take(LONGEST_FIRST_LINE).read_to_end(&mut start).map_err(at(path))?;
    Ok(start.strip_prefix(b"#!").map(|rest| {
        let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
        named(&String::from_utf8_lossy(line))
    }))
}

fn named(line: &str) -> Vec<String> {
    let mut words = line.split_whitespace();
    let Some(interpreter) = words.next() else { return Vec::new() };
    let mut named = vec![interpreter.to_owned()];
    if Path::new(interpreter).file_name().is_some_and(|name| name == "env") {
        named.extend(words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned));
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn places(files: &Files) -> Vec<String> {
        files.iter().map(|(guest, _)| guest.display().to_string()).collect()
    }

    #[test]
    fn a_program_brings_its_libraries() {
        let mut files = Files::default();
        let path = files.add_program("sort").unwrap();
        assert!(path.is_absolute() && path.ends_with("sort"));
        let places = places(&files);
        assert!(places.contains(&"/lib/x86_64-linux-gnu/libc.so.6".to_owned()), "{places:?}");
        assert!(files.bytes() > 1_000_000);
    }

    #[test]
    fn a_script_brings_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let path = script(folder.path(), "run", "#!/usr/bin/env -S sort -n\n");
        let mut files = Files::default();
        files.add_program(path.to_str().unwrap()).unwrap();
        let places = places(&files);
        for name in ["/env", "/sort", "/libc.so.6"] {
            assert!(places.iter().any(|place| place.ends_with(name)), "{name}: {places:?}");
        }
    }

    #[test]
    fn first_lines_name_interpreters() {
        assert_eq!(named(" /bin/sh -e"), ["/bin/sh"]);
        assert_eq!(named("/usr/bin/env python3"), ["/usr/bin/env", "python3"]);
        assert_eq!(named("/usr/bin/env -S A=1 python3 -u"), ["/usr/bin/env", "python3"]);
        assert!(named("").is_empty());
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = |name: &str| Files::default().add_program(name).unwrap_err().to_string();
        assert!(error("no-such-program").contains("no-such-program"));
        assert!(error("").contains("there is no program"));
        let folder = tempfile::tempdir().unwrap();
        let path = script(folder.path(), "run", "#!/no/such/interpreter\n");
        assert!(error(path.to_str().unwrap()).contains("/no/such/interpreter"));
        let own = script(folder.path(), "own", &format!("#!{}\n", folder.path().join("own").display()));
        assert!(error(own.to_str().unwrap()).contains("script of a script"));
        let absent = Files::default().add(Path::new("/no/such/file"), None).unwrap_err().to_string();
        assert!(absent.contains("/no/such/file"), "{absent}");
    }

    #[test]
    fn a_folder_is_taken_with_its_folders_to_another_place() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/file"), "12345").unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
        let mut files = Files::default();
        files.add(folder.path(), Some(Path::new("data"))).unwrap();
        assert_eq!(places(&files), ["/data/sub/file"]);
        assert_eq!(files.bytes(), 5);
        files.add(&folder.path().join("sub/file"), None).unwrap();
        assert!(places(&files).contains(&folder.path().join("sub/file").display().to_string()));
    }
}
