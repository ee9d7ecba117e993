//! A paper's tables, as an experiment gives them.

use serde::Deserialize;

/// A table of the paper: figures of workloads under the baseline and under a policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// What it shows, with its unit.
    pub title: String,
    /// What is measured.
    pub of: Quantity,
    /// The policy beside the baseline.
    pub policy: String,
    /// Its rows; those of workloads that no claim needs are left out.
    pub rows: Vec<TableRow>,
}

/// What a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Mean execution time, in seconds.
    Time,
    /// Misses of second levels, divided by 3000.
    L2Misses,
    /// Misses of third levels, divided by 3000.
    L3Misses,
    /// Misses of second levels by the programs' own code, divided by 3000.
    OwnL2Misses,
}

/// A row of a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableRow {
    /// The workload.
    pub workload: String,
    /// Whose misses; of all its programs, if left out.
    pub application: Option<String>,
    /// The paper's figures: under its baseline, and new.
    pub paper: [f64; 2],
}
