//! Experiments, claims, results, report.
//!
//! A [`Job`] is one run of a workload under a policy; [`run_all`] does many at a time.

mod job;

pub use job::{Job, JobError, Progress, Run, Workload, run_all, run_one};
