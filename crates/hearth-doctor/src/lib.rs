//! What this kernel and machine can do, and what changes here when Hearth schedules it.
//!
//! Each check reads files below a root, so that it can be tested, and so that a copy of another
//! host's `/proc` and `/sys` can be looked at. What only a running system tells, such as counters, is
//! looked at on this host alone.

mod commands;
mod counters;
mod effects;
mod host;
mod kernel;
mod pages;

pub use commands::{Command, Works};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// How a finding is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Works, with a consequence.
    Warning,
    /// Hearth cannot run without it.
    Missing,
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub subject: &'static str,
    /// How it is meant.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// The fix, or the consequence.
    pub advice: Option<String>,
}

impl Finding {
    fn ok(subject: &'static str, found: impl Into<String>) -> Self {
        Self { subject, level: Level::Ok, found: found.into(), advice: None }
    }

    fn warning(subject: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { subject, level: Level::Warning, found: found.into(), advice: Some(advice.into()) }
    }

    fn missing(subject: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { subject, level: Level::Missing, found: found.into(), advice: Some(advice.into()) }
    }
}

/// Whether Hearth can run, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// `hearth start` works.
    Ready,
    /// The kernel or the machine cannot do it.
    Cannot,
    /// It needs more privilege.
    NoPrivilege,
}

/// Everything that was found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// In the order in which one reads them.
    pub findings: Vec<Finding>,
    /// What each command can do here.
    pub commands: Vec<Command>,
    /// Whether Hearth can run.
    pub verdict: Verdict,
}

/// Looks at a host.
pub fn look(root: &Path) -> Report {
    let root = Root(root.to_owned());
    let mut findings = kernel::findings(&root);
    findings.extend(host::findings(&root));
    let cannot = findings.iter().any(|finding| finding.level == Level::Missing);
    let privilege = root.is_here().then(kernel::privilege);
    let lacks = privilege.as_ref().is_some_and(|finding| finding.level == Level::Missing);
    findings.extend(privilege);
    if root.is_here() {
        findings.extend(counters::findings());
    }
    findings.extend(pages::findings(&root));
    findings.extend(effects::findings(&root));
    findings.extend(host::daemons(&root));
    let verdict = match (cannot, lacks) {
        (true, _) => Verdict::Cannot,
        (false, true) => Verdict::NoPrivilege,
        (false, false) => Verdict::Ready,
    };
    Report { commands: commands::commands(&root, &findings), findings, verdict }
}

/// A host's file system, or a copy of some of it.
struct Root(PathBuf);

impl Root {
    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// Whether it is this very host.
    fn is_here(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// That a file is not there, and what to do: `here` on this host, to copy it elsewhere.
    fn lacks(&self, path: &str, here: &str) -> String {
        if self.is_here() {
            format!("no {path}; {here}")
        } else {
            format!("the copy has no {}; copy it, too", self.path(path).display())
        }
    }

    /// A file's text without white space around it; `None` if it cannot be read.
    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok().map(|text| text.trim().to_owned())
    }

    fn number(&self, path: &str) -> Option<i64> {
        self.text(path)?.parse().ok()
    }

    fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }
}

#[cfg(test)]
mod tests;
