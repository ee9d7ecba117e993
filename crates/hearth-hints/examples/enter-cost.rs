//! Prints what entering and leaving a fragment costs at its home:
//! `cargo run --release -p hearth-hints --example enter-cost`, and with `HEARTH_FRAGMENTS=off`.

use std::hint::black_box;
use std::time::{Duration, Instant};

const ENTERS: u32 = 20_000_000;

fn main() {
    let way = std::env::var("HEARTH_FRAGMENTS").unwrap_or_else(|_| "on".into());
    let before = hearth_hints::fragments::counts();
    let cost = enter_and_leave_ns();
    let counts = hearth_hints::fragments::counts();
    let enters = (counts.enters - before.enters).max(1);
    let at_home = 100 * (counts.at_home - before.at_home) / enters;
    println!("HEARTH_FRAGMENTS={way}: {cost:.1} ns an enter and leave, {at_home} % of them at home");
}

/// The best of nine rounds, which other work on the machine disturbed least.
fn enter_and_leave_ns() -> f64 {
    let rounds = (0..9).map(|_| {
        let begin = Instant::now();
        for _ in 0..ENTERS / 9 {
            drop(black_box(hearth_hints::enter(black_box(7))));
        }
        begin.elapsed()
    });
    rounds.min().unwrap_or(Duration::ZERO).as_secs_f64() * 1e9 / f64::from(ENTERS / 9)
}
