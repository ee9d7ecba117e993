//! What a guest printed, taken apart.
//!
//! The script's lines come between markers that `init.sh` and the script's `section` print:
//! `@@section NAME`, `@@status N`, `@@kernel-log` and `@@end`.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::GuestError;

/// Levels up to this one are warnings or worse.
const KERNEL_WARNING: u8 = 4;
const KERNEL_TROUBLE: [&str; 8] =
    ["WARNING:", "BUG:", "Oops", "stall", "lockup", "hung_task", "blocked for more than", "Call Trace:"];

/// What a guest said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Sections in the order in which the script started them. Lines before the first are in one
    /// without a name.
    pub sections: Vec<Section>,
    /// The script's exit status.
    pub status: i32,
    /// The kernel's log.
    pub kernel_log: Vec<KernelLine>,
    /// Whether the guest shut down, rather than panicked.
    pub powered_off: bool,
}

/// A named part of the script's output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Its lines.
    pub lines: Vec<String>,
}

/// A line of the kernel's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelLine {
    /// 0 (emergency) to 7 (debug).
    pub level: u8,
    /// With its time.
    pub text: String,
}

/// A line of `key=value` pairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    line: String,
    values: BTreeMap<String, String>,
}

impl Output {
    /// None if the guest did not get to the end.
    pub(crate) fn parse(results: &str, console: &str) -> Option<Self> {
        let mut sections = vec![Section::default()];
        let mut status = None;
        let mut kernel_log = Vec::new();
        let mut lines = results.lines().map(|line| line.trim_end_matches('\r'));
        while let Some(line) = lines.next() {
            if let Some(name) = line.strip_prefix("@@section ") {
                sections.push(Section { name: name.trim().to_owned(), lines: Vec::new() });
            } else if let Some(text) = line.strip_prefix("@@status ") {
                status = text.trim().parse().ok();
            } else if line == "@@kernel-log" {
                kernel_log.extend(lines.by_ref().take_while(|line| *line != "@@end").map(KernelLine::parse));
            } else if let Some(section) = sections.last_mut() {
                section.lines.push(line.to_owned());
            }
        }
        if sections.first().is_some_and(|section| section.lines.is_empty()) {
            sections.remove(0);
        }
        let powered_off = console.contains("reboot: Power down");
        Some(Self { sections, status: status?, kernel_log, powered_off })
    }

    /// The first section of a name.
    pub fn section(&self, name: &str) -> Result<&Section, GuestError> {
        self.sections.iter().find(|section| section.name == name).ok_or_else(|| GuestError::NoSection {
            name: name.to_owned(),
            found: self.sections.iter().map(|section| section.name.as_str()).collect::<Vec<_>>().join(", "),
            tail: self.sections.last().map_or_else(String::new, |section| section.lines.join("\n")),
        })
    }

    /// Lines of the kernel's log that tell of trouble: warnings, bugs, stalls, lockups.
    pub fn kernel_trouble(&self) -> Vec<&str> {
        let is_trouble = |line: &&KernelLine| KERNEL_TROUBLE.iter().any(|word| line.text.contains(word));
        self.kernel_log.iter().filter(is_trouble).map(|line| line.text.as_str()).collect()
    }
}

impl Section {
    /// Its lines of `key=value` pairs; other lines are left out.
    pub fn records(&self) -> Vec<Record> {
        self.lines.iter().filter_map(|line| Record::parse(line)).collect()
    }

    /// The first record whose `key` is `value`.
    pub fn record(&self, key: &str, value: &str) -> Result<Record, GuestError> {
        let found = self.records().into_iter().find(|record| record.text(key) == Some(value));
        found.ok_or_else(|| GuestError::Line {
            what: format!("no {key}={value}"),
            line: format!("section {}: {}", self.name, self.lines.join(" | ")),
        })
    }
}

impl KernelLine {
    /// `<LEVEL>[TIME] TEXT`, where the number holds the facility too.
    fn parse(line: &str) -> Self {
        let parsed = line.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        let (level, text) = match parsed {
            Some((number, text)) => (number.parse::<u32>().unwrap_or(6), text),
            None => (6, line),
        };
        Self { level: (level & 7) as u8, text: text.to_owned() }
    }

    /// Whether the kernel meant it as a warning or worse.
    pub fn is_warning(&self) -> bool {
        self.level <= KERNEL_WARNING
    }
}

impl Record {
    fn parse(line: &str) -> Option<Self> {
        let pairs = line.split_whitespace().map(|word| word.split_once('='));
        let values = pairs
            .map(|pair| pair.map(|(key, value)| (key.to_owned(), value.to_owned())))
            .collect::<Option<BTreeMap<_, _>>>()?;
        (!values.is_empty()).then(|| Self { line: line.to_owned(), values })
    }

    /// A value as it was printed.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// A value as a number, or anything else that can be read from text.
    pub fn get<T: FromStr>(&self, key: &str) -> Result<T, GuestError> {
        self.text(key)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| GuestError::Line { what: format!("no usable {key}="), line: self.line.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: &str = "stray\r\n@@section one\r\na=1 b=x\r\nplain words\r\n@@section two\n\
        @@status 3\n@@kernel-log\n<6>[ 0.1] fine\n<4>[ 0.2] WARNING: bad\n@@end\n";

    #[test]
    fn lines_belong_to_the_section_before_them() {
        let output = Output::parse(RESULTS, "x reboot: Power down").unwrap();
        let names: Vec<&str> = output.sections.iter().map(|section| section.name.as_str()).collect();
        assert_eq!(names, ["", "one", "two"]);
        assert_eq!(output.section("one").unwrap().lines, ["a=1 b=x", "plain words"]);
        assert_eq!(output.status, 3);
        assert!(output.powered_off);
    }

    #[test]
    fn a_missing_section_is_an_error_that_names_those_there_are() {
        let output = Output::parse(RESULTS, "").unwrap();
        let error = output.section("three").unwrap_err().to_string();
        assert!(error.contains("three") && error.contains("one, two"), "{error}");
        assert!(!output.powered_off);
    }

    #[test]
    fn output_without_a_status_is_incomplete() {
        assert_eq!(Output::parse("@@section one\nwords\n", ""), None);
    }

    #[test]
    fn only_lines_of_pairs_are_records() {
        let output = Output::parse(RESULTS, "").unwrap();
        let records = output.section("one").unwrap().records();
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].get::<u32>("a").unwrap(), 1);
        assert!(records[0].get::<u32>("b").unwrap_err().to_string().contains("b="));
    }

    #[test]
    fn trouble_is_found_in_the_kernel_log() {
        let output = Output::parse(RESULTS, "").unwrap();
        assert_eq!(output.kernel_trouble(), ["[ 0.2] WARNING: bad"]);
        assert!(output.kernel_log[1].is_warning() && !output.kernel_log[0].is_warning());
    }
}
