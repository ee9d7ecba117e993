use hearth_lab::{Experiment, JobError, Judgement, Kept, Progress, Run, Runner, judge};

struct Silent;

impl Progress for Silent {
    fn advanced(&self, _: usize, _: usize, _: Result<&Run, &JobError>) {}
}

/// With one seed.
pub fn judged(experiment: &Experiment, scale: f64, kept: Option<&Kept>) -> Judgement {
    judge(experiment, scale, &[1], &Runner { threads: 2, kept, progress: &Silent, stop: None }).unwrap()
}
