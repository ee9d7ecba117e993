//! Prints what entering and leaving a fragment costs at its home, and finding its range by an address:
//! `cargo run --release -p hearth-hints --example enter-cost`, and with `HEARTH_FRAGMENTS=off`.

use std::hint::black_box;
use std::time::{Duration, Instant};

const ENTERS: u32 = 20_000_000;
const LOOKS: u32 = 1_000_000;

fn main() {
    let way = std::env::var("HEARTH_FRAGMENTS").unwrap_or_else(|_| "on".into());
    // Some for each CPU: one of them has its home wherever the thread is.
    (1..=64).for_each(|fragment| drop(hearth_hints::enter(fragment)));
    println!("HEARTH_FRAGMENTS={way}: {:.1} ns an enter and leave", enter_and_leave_ns());
    let data = vec![0_u8; 100_000];
    for shard in data.chunks(10) {
        hearth_hints::fragments::range(shard);
    }
    println!("one of 10,000 ranges is found in {:.1} ns", look_up_ns(&data));
}

/// At random addresses; the best of nine rounds.
fn look_up_ns(data: &[u8]) -> f64 {
    let mut at = 1;
    let rounds = (0..9).map(|_| {
        let begin = Instant::now();
        for _ in 0..LOOKS {
            at = at * 7919 % 99_991;
            black_box(hearth_hints::fragment_at(&data[at]));
        }
        begin.elapsed()
    });
    rounds.min().unwrap_or(Duration::ZERO).as_secs_f64() * 1e9 / f64::from(LOOKS)
}

/// The best of nine rounds, which other work on the machine disturbed least.
fn enter_and_leave_ns() -> f64 {
    let rounds = (0..9).map(|_| {
        let here = (1..=64).find(|fragment| hearth_hints::fragments::is_here(*fragment)).unwrap_or(1);
        let begin = Instant::now();
        for _ in 0..ENTERS / 9 {
            drop(black_box(hearth_hints::enter(black_box(here))));
        }
        begin.elapsed()
    });
    rounds.min().unwrap_or(Duration::ZERO).as_secs_f64() * 1e9 / f64::from(ENTERS / 9)
}
