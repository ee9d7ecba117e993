//! Standard output and files.

use crate::failure::{Failure, Outcome};
use anyhow::Context;
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The version of what `--json` prints; it changes when a key changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Versioned<'a, T> {
    schema: u32,
    #[serde(flatten)]
    content: &'a T,
}

/// Prints text; a reader that has gone is no error.
pub fn print(text: &str) -> Outcome {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::NoReader),
        Err(error) => {
            Err(Failure::failed(anyhow::Error::new(error).context("cannot write to standard output")))
        }
    }
}

/// A name from another process, without what could steer a terminal.
pub fn shown(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Prints a value with fields as JSON, together with the schema's version.
pub fn print_json(content: &impl Serialize) -> Outcome {
    let versioned = Versioned { schema: SCHEMA, content };
    let mut text = serde_json::to_string_pretty(&versioned).map_err(Failure::failed)?;
    text.push('\n');
    print(&text)
}

/// The same on one line, to follow a command's own output.
pub fn print_json_line(content: &impl Serialize) -> Outcome {
    let versioned = Versioned { schema: SCHEMA, content };
    let mut text = serde_json::to_string(&versioned).map_err(Failure::failed)?;
    text.push('\n');
    print(&text)
}

/// This command's line, as a shell takes it; whichever program of ours it was.
pub fn command_line() -> String {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let words = ["hearth"].into_iter().chain(words.iter().map(String::as_str));
    shlex::try_join(words).unwrap_or_default()
}

/// Rows as CSV, below a header.
pub fn csv(header: &[String], rows: &[Vec<String>]) -> Result<String, Failure> {
    let mut lines = csv::Writer::from_writer(Vec::new());
    std::iter::once(header)
        .chain(rows.iter().map(Vec::as_slice))
        .try_for_each(|row| lines.write_record(row))
        .map_err(Failure::failed)?;
    let text = lines.into_inner().map_err(|error| Failure::failed(error.into_error()))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Writes a file beside its place and renames it, so that it is complete or not there.
pub fn write_file(path: &Path, content: &[u8]) -> Outcome {
    write_beside(path, content)
        .with_context(|| {
            format!("cannot write {}; name a file in a folder that you may write to", path.display())
        })
        .map_err(Failure::Failed)
}

fn write_beside(path: &Path, content: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut file = tempfile::Builder::new()
        .prefix(".hearth-")
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(folder_of(path))?;
    file.write_all(content)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses, before anything runs, a file that could not be written at the end.
pub fn check_writable(path: &Path) -> Outcome {
    let problem = if path.is_dir() {
        "it is a folder"
    } else if path.exists() && !path.is_file() {
        "it is a device or a pipe, which a file would replace"
    } else if !folder_of(path).is_dir() {
        "its folder does not exist"
    } else {
        return Ok(());
    };
    Err(Failure::Input(anyhow::anyhow!(
        "cannot write {}: {problem}; name a file in an existing folder",
        path.display()
    )))
}

/// Whether results go to a terminal.
pub fn to_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Says which files were written.
pub fn announce<'a>(paths: impl IntoIterator<Item = &'a Option<PathBuf>>) {
    paths.into_iter().flatten().for_each(|path| anstream::eprintln!("wrote {}", path.display()));
}
