//! Errors that say what is wrong, where (file, line and key), and how to mend it.
//!
//! [`read`] turns TOML text into a value; what serde finds wrong becomes a [`LocatedError`]. A
//! check that comes later works on the value alone and returns a [`Fault`], whose key is a path
//! such as `cache[1].size`; [`Fault::locate`] finds the line.

use std::fmt;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

/// Something wrong with a value, at a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Path of the key: `cache[1].size`; empty for the whole file.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// How to mend it.
    pub mend: String,
}

impl Fault {
    /// A fault at `key`.
    pub fn new(key: impl Into<String>, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Fault { key: key.into(), what: what.into(), mend: mend.into() }
    }

    /// The same fault with its place in `text`, which came from `origin` (a file name).
    pub fn locate(self, text: &str, origin: &str) -> LocatedError {
        let span = DeTable::parse(text).ok().and_then(|table| span_of(table.get_ref(), &self.key));
        let line = line_of(text, span.map_or(0, |span| span.start));
        LocatedError { origin: origin.to_owned(), line, key: self.key, what: self.what, mend: self.mend }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_fault(out, &self.key, &self.what, &self.mend)
    }
}

impl std::error::Error for Fault {}

/// Checks that a number lies between two others; `show` gives it its unit.
///
/// # Errors
/// A fault at `key` that names the bounds.
pub fn within<N: Copy + PartialOrd, S: fmt::Display>(
    key: impl Into<String>,
    value: N,
    least: N,
    most: N,
    show: impl Fn(N) -> S,
) -> Result<(), Fault> {
    if least <= value && value <= most {
        return Ok(());
    }
    let what = format!("{} is out of bounds", show(value));
    Err(Fault::new(key, what, format!("write {} to {}", show(least), show(most))))
}

/// Checks a name: names become parts of file names and of command lines.
///
/// # Errors
/// A fault at `key` that says what a name is.
pub fn name(key: impl Into<String>, name: &str) -> Result<(), Fault> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && name.len() <= 64
        && name.chars().all(fits)
    {
        return Ok(());
    }
    let mend = "write up to 64 letters, digits, `-`, `_` and `.`, beginning with a letter or a digit";
    Err(Fault::new(key, format!("{name:?} is not a name"), mend))
}

/// A [`Fault`] with its place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedError {
    /// File name, or another name for where the text came from.
    pub origin: String,
    /// Line, from 1.
    pub line: usize,
    /// Path of the key; empty where there is none.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// How to mend it.
    pub mend: String,
}

impl fmt::Display for LocatedError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: ", self.origin, self.line)?;
        write_fault(out, &self.key, &self.what, &self.mend)
    }
}

impl std::error::Error for LocatedError {}

fn write_fault(out: &mut fmt::Formatter<'_>, key: &str, what: &str, mend: &str) -> fmt::Result {
    if !key.is_empty() {
        write!(out, "{key}: ")?;
    }
    write!(out, "{what}; {mend}")
}

/// Reads `text`, which came from `origin`, as a `T`.
///
/// # Errors
/// Text that is not TOML, an unknown or missing key, a value of the wrong type or unit.
pub fn read<T: DeserializeOwned>(text: &str, origin: &str) -> Result<T, LocatedError> {
    toml::from_str(text).map_err(|error| from_toml(&error, text, origin))
}

/// Separates what is wrong from how to mend it within the one string that a serde error carries.
const SEPARATOR: char = '\u{1f}';

/// The message of a custom serde error that [`read`] takes apart again.
pub fn with_mend(what: &str, mend: &str) -> String {
    format!("{what}{SEPARATOR}{mend}")
}

fn from_toml(error: &toml::de::Error, text: &str, origin: &str) -> LocatedError {
    let span = error.span().unwrap_or(0..0);
    let (key, (what, mend)) = match DeTable::parse(text) {
        Ok(table) => (key_at(table.get_ref(), &span), explain(error.message())),
        Err(syntax) => (String::new(), explain_syntax(syntax.message())),
    };
    LocatedError { origin: origin.to_owned(), line: line_of(text, span.start), key, what, mend }
}

/// A message of the TOML parser as what is wrong and how to mend it.
fn explain_syntax(message: &str) -> (String, String) {
    let mend = match message {
        "duplicate key" => "remove one of the two",
        _ => "write lines such as `key = 1`, `key = \"text\"` and `[table]`",
    };
    (format!("this is not TOML: {}", message.replace('\n', ", ")), mend.to_owned())
}

/// Splits a message of serde into what is wrong and how to mend it.
fn explain(message: &str) -> (String, String) {
    if let Some((what, mend)) = message.split_once(SEPARATOR) {
        return (what.to_owned(), mend.to_owned());
    }
    if let Some((unknown, known)) =
        message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'))
    {
        return (format!("there is no key `{unknown}` here"), suggest(unknown, known));
    }
    if let Some((unknown, known)) =
        message.strip_prefix("unknown variant `").and_then(|rest| rest.split_once('`'))
    {
        return (format!("`{unknown}` is not a value of this key"), suggest(unknown, known));
    }
    if let Some(missing) = message.strip_prefix("missing field ") {
        return (format!("{missing} is missing"), format!("add {missing} to this table"));
    }
    if let Some((found, expected)) = message.split_once(", expected ") {
        let found = found.trim_start_matches("invalid type: ").trim_start_matches("invalid value: ");
        return (format!("{found} does not fit here"), format!("write {}", plain(expected)));
    }
    (message.to_owned(), "see the presets for the layout of the file".to_owned())
}

/// What serde expects, without Rust's names of types.
fn plain(expected: &str) -> &str {
    match expected {
        "u32" | "u64" | "usize" => "a whole number, not negative",
        "f64" => "a number",
        other => other,
    }
}

/// Names the known word that is nearest to `unknown`; `known` lists words in back quotes.
fn suggest(unknown: &str, known: &str) -> String {
    let words: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    if words.is_empty() { "remove it".to_owned() } else { one_of(unknown, &words) }
}

/// How to mend a word that is none of those known: the one that is likely meant, or all.
pub fn one_of(unknown: &str, known: &[&str]) -> String {
    match nearest(unknown, known) {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("it may be one of: {}", known.join(", ")),
    }
}

/// The known word that is likely meant by one that is not known.
pub fn nearest<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = |word: &&str| strsim::jaro_winkler(unknown, word);
    known.iter().copied().max_by(|a, b| near(a).total_cmp(&near(b))).filter(|word| near(word) > 0.75)
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// Where a key stands: its path, and the bytes of its name and of its value.
struct Place {
    path: String,
    name: Range<usize>,
    value: Range<usize>,
}

/// Every key of `table`, and every item of its arrays, outer ones first.
fn places(table: &DeTable<'_>) -> Vec<Place> {
    let mut found = Vec::new();
    collect_table(table, "", &mut found);
    found
}

fn collect_table(table: &DeTable<'_>, path: &str, found: &mut Vec<Place>) {
    for (key, value) in table {
        let dot = if path.is_empty() { "" } else { "." };
        let here = format!("{path}{dot}{}", key.get_ref());
        found.push(Place { path: here.clone(), name: key.span(), value: value.span() });
        collect_value(value.get_ref(), &here, found);
    }
}

fn collect_value(value: &DeValue<'_>, path: &str, found: &mut Vec<Place>) {
    match value {
        DeValue::Table(table) => collect_table(table, path, found),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let here = format!("{path}[{index}]");
                found.push(Place { path: here.clone(), name: item.span(), value: item.span() });
                collect_value(item.get_ref(), &here, found);
            }
        }
        _ => {}
    }
}

/// The innermost key whose name or value holds the start of `span`.
fn key_at(table: &DeTable<'_>, span: &Range<usize>) -> String {
    let holds = |place: &Place| place.name.contains(&span.start) || place.value.contains(&span.start);
    places(table)
        .into_iter()
        .filter(holds)
        .max_by_key(|place| place.path.len())
        .map_or_else(String::new, |place| place.path)
}

/// Where `path`, or the nearest table around it, stands.
fn span_of(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    let around = |place: &Place| {
        path.strip_prefix(&place.path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    places(table).into_iter().filter(around).max_by_key(|place| place.path.len()).map(|place| place.name)
}

/// A file that cannot be read, where a preset's name would have done too.
#[derive(Debug, thiserror::Error)]
#[error("{path}: cannot read this {kind}: {reason}; name a readable TOML file or one of: {known}")]
pub struct UnreadableError {
    /// As given.
    pub path: String,
    /// What was to be read: `machine`, `policy`.
    pub kind: &'static str,
    /// Names of the presets.
    pub known: String,
    /// Why.
    pub reason: std::io::Error,
}

/// Reads the file at `path`.
///
/// # Errors
/// When it cannot be read; the message lists the names of `presets`.
pub fn read_file(
    path: &str,
    kind: &'static str,
    presets: &[(&str, &str)],
) -> Result<String, UnreadableError> {
    std::fs::read_to_string(path).map_err(|reason| {
        let names: Vec<&str> = presets.iter().map(|(name, _)| *name).collect();
        UnreadableError { path: path.to_owned(), kind, known: names.join(", "), reason }
    })
}
