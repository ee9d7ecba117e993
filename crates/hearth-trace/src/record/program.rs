//! Finds the program to record and checks that it can be.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::RecordError;

/// An x86-64 program with its arguments.
#[derive(Debug)]
pub(super) struct Program {
    pub path: PathBuf,
    /// The program's name as it was typed: its argument 0.
    pub name: OsString,
    pub arguments: Vec<OsString>,
}

impl Program {
    pub fn find(command: &[OsString]) -> Result<Self, RecordError> {
        let (name, arguments) = command.split_first().ok_or(RecordError::NoCommand)?;
        let path = match name.as_encoded_bytes().contains(&b'/') {
            true => PathBuf::from(name),
            false => find_in_path(name).ok_or_else(|| RecordError::NotFound(name.display().to_string()))?,
        };
        check_executable(&path)?;
        Ok(Program { path, name: name.clone(), arguments: arguments.to_vec() })
    }
}

/// The first executable file of this name in PATH.
pub(super) fn find_in_path(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let candidates = std::env::split_paths(&folders).map(|folder| folder.join(name.as_ref()));
    candidates.into_iter().find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

fn check_executable(path: &Path) -> Result<(), RecordError> {
    let refuse = |reason: &str| RecordError::NotExecutable { path: path.to_owned(), reason: reason.into() };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(RecordError::NotFound(path.display().to_string()));
        }
        Err(error) => return Err(refuse(&error.to_string())),
    };
    if path.is_dir() {
        return Err(refuse("it is a directory"));
    }
    let mut head = Vec::new();
    file.take(256).read_to_end(&mut head).map_err(|error| refuse(&error.to_string()))?;
    check_format(path, &head)?;
    if is_executable(path) { Ok(()) } else { Err(refuse("it has no permission to execute")) }
}

/// Checks the first bytes of a program (System V ABI, chapter 4: the ELF header).
fn check_format(path: &Path, head: &[u8]) -> Result<(), RecordError> {
    const CLASS_64: u8 = 2;
    const MACHINE_X86_64: u16 = 62;
    let other = |found: &str| RecordError::NotX86 { path: path.to_owned(), found: found.into() };
    if let Some(rest) = head.strip_prefix(b"#!") {
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        // `env` would replace itself by the interpreter, and only it would be recorded.
        let interpreter = line.strip_prefix("/usr/bin/env ").unwrap_or(line).trim().to_owned();
        return Err(RecordError::Script { path: path.to_owned(), interpreter });
    }
    if !head.starts_with(b"\x7fELF") || head.len() < 20 {
        return Err(other("not a program"));
    }
    match (head[4], u16::from_le_bytes([head[18], head[19]])) {
        (CLASS_64, MACHINE_X86_64) => Ok(()),
        (1, _) => Err(other("a 32-bit program")),
        (_, machine) => Err(other(&format!("a program for another machine (ELF machine {machine})"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str, contents: &[u8], mode: u32) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        Program::find(&[path.into()]).unwrap_err().to_string()
    }

    #[test]
    fn a_script_is_refused_with_the_name_of_its_interpreter() {
        let message = refusal("job.sh", b"#!/bin/sh -e\necho\n", 0o755);
        assert!(message.contains("record `/bin/sh -e ") && message.contains("job.sh"), "{message}");
        assert!(refusal("job", b"#!/usr/bin/env python3\n", 0o755).contains("record `python3 "));
    }

    #[test]
    fn a_file_that_is_no_program_is_refused() {
        assert!(refusal("notes", b"hello", 0o755).contains("not a program"));
        assert!(refusal("notes", b"hello", 0o644).contains("not a program"));
        let mut arm = b"\x7fELF\x02\x01\x01".to_vec();
        arm.resize(18, 0);
        arm.extend([183, 0]);
        assert!(refusal("arm", &arm, 0o755).contains("ELF machine 183"));
    }

    #[test]
    fn a_program_that_may_not_be_executed_is_refused() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        assert!(refusal("program", &program, 0o644).contains("no permission to execute"));
    }

    #[test]
    fn a_missing_program_is_named() {
        let message = Program::find(&["hearth-no-such-command".into()]).unwrap_err().to_string();
        assert!(message.starts_with("hearth-no-such-command: command not found"), "{message}");
        assert!(
            Program::find(&["/no/such/file".into()]).unwrap_err().to_string().contains("command not found")
        );
        assert!(Program::find(&["/usr".into()]).unwrap_err().to_string().contains("directory"));
        assert!(Program::find(&[]).is_err());
    }

    #[test]
    fn a_name_without_a_slash_is_looked_up_in_path() {
        assert!(Program::find(&["true".into()]).unwrap().path.is_absolute());
    }
}
