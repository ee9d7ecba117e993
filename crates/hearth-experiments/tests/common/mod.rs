use hearth_experiments::{Experiment, Job, Judgement, Kept, Progress, Runner, judge};

/// Reports nothing.
pub struct Silent;

impl Progress for Silent {
    fn began(&self, _: &Job) {}
    fn ended(&self, _: &Job, _: usize, _: usize) {}
}

/// With one seed.
#[allow(dead_code, reason = "each file of tests uses a part of this")]
pub fn judged(experiment: &Experiment, scale: f64, kept: Option<&Kept>) -> Judgement {
    judge(experiment, scale, &[1], &Runner { threads: 2, kept, progress: &Silent, stop: None }).unwrap()
}
