//! What a program is, as far as its file tells: whether the library can be loaded into it, and which
//! runtimes it is linked with.

use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, elf};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

type Elf<'a> = ElfFile64<'a, Endianness>;

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
            let content = read(&path)?;
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

    fn read(path: PathBuf, content: &[u8]) -> Self {
        let Ok(file) = Elf::parse(content) else { return Self { path, ..Self::default() } };
        Self {
            interpreter: interpreter(&file, content),
            libraries: libraries(&file, content).unwrap_or_default(),
            go: go_version(&file),
            known: file.architecture() == HERE && cfg!(target_endian = "little") == file.is_little_endian(),
            path,
        }
    }

    /// Whether the GNU C library's dynamic linker loads it, for which the preloaded library is made.
    pub fn can_preload(&self) -> bool {
        let name = self.interpreter.as_deref().and_then(Path::file_name).unwrap_or_default();
        self.known && name.as_bytes().starts_with(b"ld-linux")
    }

    /// The name of its file.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

#[cfg(target_arch = "x86_64")]
const HERE: object::Architecture = object::Architecture::X86_64;
#[cfg(target_arch = "aarch64")]
const HERE: object::Architecture = object::Architecture::Aarch64;

/// As execvp finds it.
fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let runs = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(runs)
}

/// A device or a pipe is not read: it might never end.
fn read(path: &Path) -> Option<Vec<u8>> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    fs::read(path).ok()
}

fn interpreter_of_script(content: &[u8]) -> Option<Vec<OsString>> {
    let line = content.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(|word| OsString::from_vec(word.to_vec())).collect();
    (!words.is_empty()).then_some(words)
}

/// What `env` runs: options and assignments come first.
fn command_of_env(words: &[OsString]) -> Vec<OsString> {
    let is_own = |word: &&OsString| word.as_bytes().starts_with(b"-") || word.as_bytes().contains(&b'=');
    words.iter().skip_while(is_own).cloned().collect()
}

fn interpreter(file: &Elf, content: &[u8]) -> Option<PathBuf> {
    let endian = file.endian();
    let name = file.elf_program_headers().iter().find_map(|header| header.interpreter(endian, content).ok()?)?;
    Some(PathBuf::from(OsStr::from_bytes(name)))
}

fn libraries(file: &Elf, content: &[u8]) -> Option<Vec<String>> {
    let endian = file.endian();
    let sections = file.elf_header().sections(endian, content).ok()?;
    let (entries, strings) = sections.dynamic(endian, content).ok()??;
    let strings = sections.strings(endian, content, strings).ok()?;
    let needed = entries.iter().filter(|entry| entry.tag32(endian) == Some(elf::DT_NEEDED));
    let names = needed.filter_map(|entry| entry.string(endian, strings).ok());
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
    let mut number = || numbers.next()?.chars().map_while(|c| c.to_digit(10)).reduce(|all, digit| all * 10 + digit);
    Some((number()?, number()?))
}
