//! What became of a change when it was to be undone.

use serde::Serialize;
use std::fmt;

/// What became of a change when it was to be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "detail", rename_all = "snake_case")]
pub enum Outcome {
    /// It was undone, for so many threads.
    Undone(usize),
    /// It had been undone already.
    Already,
    /// What was changed is gone.
    Gone,
    /// Somebody else changed it since; left alone.
    Changed(String),
    /// The system refused.
    Failed(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undone(1) => write!(out, "undone"),
            Self::Undone(count) => write!(out, "undone for {count}"),
            Self::Already => write!(out, "nothing to undo"),
            Self::Gone => write!(out, "gone"),
            Self::Changed(how) => write!(out, "left alone, somebody else changed it: {how}"),
            Self::Failed(why) => write!(out, "not undone: {why}"),
        }
    }
}
