//! What a program is, as far as its file tells: whether the library can be loaded into it, and which
//! runtimes it is linked with.

use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ReadCache, ReadRef, elf};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

type Content = ReadCache<File>;
type Elf<'a> = ElfFile64<'a, Endianness, &'a Content>;

/// The kernel reads as much of a script's first line.
const FIRST_LINE: u64 = 256;

/// Scripts may name scripts as their interpreters, as often as the kernel lets them.
const SCRIPTS: usize = 4;

/// A program's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The file that runs in the end: of a script, its interpreter.
    pub path: PathBuf,
    /// The dynamic linker that loads it; none: it is static.
    pub interpreter: Option<PathBuf>,
    /// The libraries that it names itself.
    pub libraries: Vec<String>,
    /// The version of Go that built it: 1.26 is (1, 26).
    pub go: Option<(u32, u32)>,
    /// Whether it is a program of this machine's kind, which this could read.
    pub known: bool,
}

impl Program {
    /// Looks at what this command would run.
    pub fn of_command(command: &[OsString]) -> Option<Self> {
        let mut words = command.to_vec();
        for _ in 0..=SCRIPTS {
            let path = find(words.first()?)?;
            let content = open(&path)?;
            match interpreter_of_script(&content) {
                Some(mut interpreter) => {
                    interpreter.push(path.into_os_string());
                    words = interpreter;
                }
                None if path.file_name() == Some(OsStr::new("env")) && words.len() > 1 => {
                    words = command_of_env(&words[1..]);
                }
                None => return Some(Self::read(path, &content)),
            }
        }
        None
    }

    fn read(path: PathBuf, content: &Content) -> Self {
        let Ok(file) = Elf::parse(content) else { return Self { path, ..Self::default() } };
        Self {
            interpreter: interpreter(&file, content),
            libraries: libraries(&file, content).unwrap_or_default(),
            go: go_version(&file),
            known: file.architecture() == HERE && cfg!(target_endian = "little") == file.is_little_endian(),
            path,
        }
    }

    /// Why the preloaded library cannot be loaded into it, if so.
    pub fn obstacle(&self) -> Option<&'static str> {
        if !self.known {
            return Some("it is no program of this machine's kind");
        }
        let Some(interpreter) = &self.interpreter else {
            return Some("it is static, so nothing can be loaded into it");
        };
        let name = interpreter.file_name().unwrap_or_default();
        let is_glibc = name.as_bytes().starts_with(b"ld-linux");
        (!is_glibc || is_older(interpreter)).then_some("its C library is not GNU's of 2.34 or later")
    }

    /// The name of its file.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Whether the C library that comes with this dynamic linker lacks the version that ours is linked with.
fn is_older(interpreter: &Path) -> bool {
    let library = interpreter.canonicalize().ok().and_then(|path| Some(path.parent()?.join("libc.so.6")));
    let Some(content) = library.as_deref().and_then(open) else { return false };
    let names = Elf::parse(&content).ok().and_then(|file| file.section_by_name(".dynstr")?.data().ok());
    names.is_some_and(|names| memchr::memmem::find(names, NEWEST).is_none())
}

/// The newest version of the C library's that the preloaded library names.
const NEWEST: &[u8] = b"GLIBC_2.34\0";

#[cfg(target_arch = "x86_64")]
const HERE: object::Architecture = object::Architecture::X86_64;
#[cfg(target_arch = "aarch64")]
const HERE: object::Architecture = object::Architecture::Aarch64;

/// As execvp finds it.
pub(super) fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let runs = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(runs)
}

/// A device or a pipe is not read: it might never end.
fn open(path: &Path) -> Option<Content> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    File::open(path).ok().map(ReadCache::new)
}

fn interpreter_of_script(content: &Content) -> Option<Vec<OsString>> {
    let length = content.len().ok()?.min(FIRST_LINE);
    let line =
        content.read_bytes_at(0, length).ok()?.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(|word| OsString::from_vec(word.to_vec())).collect();
    (!words.is_empty()).then_some(words)
}

/// What `env` runs: options and assignments come first.
fn command_of_env(words: &[OsString]) -> Vec<OsString> {
    let is_own = |word: &&OsString| word.as_bytes().starts_with(b"-") || word.as_bytes().contains(&b'=');
    words.iter().skip_while(is_own).cloned().collect()
}

fn interpreter(file: &Elf, content: &Content) -> Option<PathBuf> {
    let endian = file.endian();
    let name =
        file.elf_program_headers().iter().find_map(|header| header.interpreter(endian, content).ok()?)?;
    Some(PathBuf::from(OsStr::from_bytes(name)))
}

fn libraries(file: &Elf, content: &Content) -> Option<Vec<String>> {
    let endian = file.endian();
    let sections = file.elf_header().sections(endian, content).ok()?;
    let (entries, strings) = sections.dynamic(endian, content).ok()??;
    let strings = sections.strings(endian, content, strings).ok()?;
    let needed = entries.iter().filter(|entry| entry.tag32(endian) == Some(elf::DT_NEEDED));
    let names = needed.filter_map(|entry| strings.get(entry.val32(endian)?).ok());
    Some(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// From the section where Go's linker notes its version: 32 bytes of header, then the text, preceded by
/// its length.
fn go_version(file: &Elf) -> Option<(u32, u32)> {
    let section = file.section_by_name(".go.buildinfo")?;
    let data = section.data().ok()?;
    data.strip_prefix(b"\xff Go buildinf:")?;
    let length = usize::from(*data.get(32)?);
    let text = std::str::from_utf8(data.get(33..33 + length)?).ok()?;
    let mut numbers = text.strip_prefix("go")?.split('.');
    let mut number =
        || numbers.next()?.chars().map_while(|c| c.to_digit(10)).reduce(|all, digit| all * 10 + digit);
    Some((number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::library::LIBRARY;

    fn script(folder: &Path, name: &str, line: &str) -> OsString {
        let path = folder.join(name);
        fs::write(&path, format!("{line}\nexit\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.into_os_string()
    }

    #[test]
    fn a_script_is_what_its_interpreter_is() {
        let folder = tempfile::tempdir().unwrap();
        let shell = Program::of_command(&["/bin/sh".into()]).unwrap();
        assert!(shell.known && shell.obstacle().is_none(), "{shell:?}");
        let direct = script(folder.path(), "direct", "#!/bin/sh -e");
        assert_eq!(Program::of_command(&[direct]).unwrap().libraries, shell.libraries);
        let by_env = script(folder.path(), "by-env", "#!/usr/bin/env -S LANG=C sh");
        assert_eq!(Program::of_command(&[by_env]).unwrap().libraries, shell.libraries);
    }

    #[test]
    fn a_script_that_names_itself_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("self");
        let line = format!("#!{}", path.display());
        assert_eq!(Program::of_command(&[script(folder.path(), "self", &line)]), None);
    }

    #[test]
    fn what_is_no_program_is_unknown() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [("empty", &b""[..]), ("text", b"hello"), ("cut", b"\x7fELF\x02\x01\x01")] {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            let found = Program::of_command(&[path.into_os_string()]).unwrap();
            assert!(!found.known && found.obstacle().is_some());
        }
        assert_eq!(Program::of_command(&["no-such-program-anywhere".into()]), None);
        assert_eq!(Program::of_command(&["/dev/zero".into()]), None);
    }

    #[test]
    fn the_library_names_no_newer_version_of_the_c_library() {
        let versions = memchr::memmem::find_iter(LIBRARY, b"GLIBC_2.").map(|at| {
            let digits = LIBRARY[at + 8..].iter().take_while(|byte| byte.is_ascii_digit());
            digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
        });
        assert_eq!(versions.max(), Some(34));
    }
}
