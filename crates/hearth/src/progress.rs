//! How far a set of runs is, on a terminal.

use hearth_lab::{JobError, Progress, Run};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// A bar on standard error; nothing where that is no terminal.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar for so many runs; the number may be corrected as they end.
    pub fn new(runs: usize) -> Self {
        let bar = if std::io::stderr().is_terminal() {
            ProgressBar::new(runs as u64).with_style(style())
        } else {
            ProgressBar::hidden()
        };
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn advanced(&self, done: usize, all: usize, run: Result<&Run, &JobError>) {
        if let Ok(run) = run {
            self.bar.set_message(format!("{} under {}, seed {}", run.workload, run.policy, run.seed));
        }
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
    }
}

fn style() -> ProgressStyle {
    let template = "{bar:30} {pos}/{len} runs, {elapsed} gone, {eta} to go  {wide_msg}";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
