//! Experiments, claims, results, report.
//!
//! A [`Job`] is one run of a workload under a policy; a [`Runner`] does many at a time;
//! an [`Experiment`] is a paper's worth of claims, which [`judge`] checks.

mod claims;
mod data;
mod experiment;
mod isolation;
mod job;
mod kept;
mod measures;
mod numa;
mod parallel;
pub mod perfetto;
mod policies;
pub mod report;
mod setup;
mod table;
pub mod trace_study;
mod variant;

pub use claims::{ClaimResult, JudgeError, Judgement, RowResult, Verdict, judge};
pub use experiment::{Claim, EndName, Experiment, ExperimentError, Kind, Measure, Row, SwitchName};
pub use isolation::{
    Beside, Figures, Group, MissRates, Principal, SampledIn, ScheduleError, Schedules, Speed,
};
pub use job::{Job, JobError, Progress, Run, Runner, Workload, run_one};
pub use kept::{Kept, KeptError};
pub use parallel::Setting;
pub use policies::{Names, Policies};
pub use table::{Quantity, Table, TableRow};
pub use variant::{Variant, VariantResult, judge_with_variants};
