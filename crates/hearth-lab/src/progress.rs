//! How far a set of runs is.

use hearth_experiments::{Job, Progress};
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a log is told how far they are, at most.
const TELLING: Duration = Duration::from_secs(300);

/// A bar on standard error, with the runs under way; where that is no terminal, a line now and then.
pub struct Bar {
    bar: ProgressBar,
    state: Mutex<State>,
}

struct State {
    under_way: Vec<String>,
    told: Instant,
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
        Self { bar, state: Mutex::new(State { under_way: Vec::new(), told: Instant::now() }) }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bar {
    /// A run of this name begins.
    pub fn run_began(&self, name: String) {
        let mut state = self.state();
        state.under_way.push(name);
        self.bar.set_message(state.under_way.join("; "));
    }

    /// It has ended; so many of all are done.
    pub fn run_ended(&self, name: &str, done: usize, all: usize) {
        let mut state = self.state();
        if let Some(at) = state.under_way.iter().position(|under_way| under_way == name) {
            state.under_way.remove(at);
        }
        self.bar.set_message(state.under_way.join("; "));
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
        if self.bar.is_hidden() && state.told.elapsed() >= TELLING {
            state.told = Instant::now();
            eprintln!("{}", line(done, all, self.bar.elapsed(), &state.under_way));
        }
    }
}

impl Progress for Bar {
    fn began(&self, run: &Job) {
        self.run_began(run.name());
    }

    fn ended(&self, run: &Job, done: usize, all: usize) {
        self.run_ended(&run.name(), done, all);
    }
}

fn style() -> ProgressStyle {
    let template = "{bar:30} {pos}/{len} runs, {elapsed} gone, {eta} to go  {wide_msg}";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// What a log is told. Runs differ in length, so what is to go is a guess.
fn line(done: usize, all: usize, gone: Duration, under_way: &[String]) -> String {
    let rest = gone.mul_f64(all.saturating_sub(done) as f64 / done.max(1) as f64);
    let [gone, rest] = [gone, rest].map(HumanDuration);
    format!("{done} of {all} runs, {gone} gone, some {rest} to go; under way: {}", under_way.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_told_how_much_is_left_and_what_runs() {
        let under_way = ["matrix under light, seed 2".to_owned(), "oltp under heavy, seed 1".to_owned()];
        let told = line(30, 90, Duration::from_secs(600), &under_way);
        assert_eq!(
            told,
            "30 of 90 runs, 10 minutes gone, some 20 minutes to go; \
             under way: matrix under light, seed 2; oltp under heavy, seed 1"
        );
    }
}
