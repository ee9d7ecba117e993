//! Prints what asking for the number costs, with a leader's word and without:
//! `cargo run --release -p hearth-hints --example read-cost`

use hearth_hints::page::{Page, Why};
use std::hint::black_box;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::time::{Duration, Instant};

const READS: u32 = 20_000_000;

fn main() -> std::io::Result<()> {
    let own_alone = std::fs::Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().permissions(own_alone).tempdir()?;
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("HEARTH_DIR", folder.path()) };
    let alone = hearth_hints::cpus();
    println!("nobody says  {:>5.1} ns a read, {alone} CPUs by mask and quota", read_ns());

    let page = folder.path().join(std::process::id().to_string());
    let page = std::fs::OpenOptions::new().write(true).open(page)?;
    page.write_all_at(&Page::said(77, Why::Share, now_ns()?), Page::SAID)?;
    assert_eq!(hearth_hints::cpus(), 77, "a leader's word is read");
    println!("a leader says {:>4.1} ns a read", read_ns());
    Ok(())
}

/// The best of nine rounds, which other work on the machine disturbed least.
fn read_ns() -> f64 {
    let rounds = (0..9).map(|_| {
        let begin = Instant::now();
        (0..READS / 9).for_each(|_| {
            black_box(hearth_hints::cpus());
        });
        begin.elapsed()
    });
    rounds.min().unwrap_or(Duration::ZERO).as_secs_f64() * 1e9 / f64::from(READS / 9)
}

/// `CLOCK_MONOTONIC`, which begins with the machine, as `/proc/uptime` has it.
fn now_ns() -> std::io::Result<u64> {
    let text = std::fs::read_to_string("/proc/uptime")?;
    let seconds: f64 = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    Ok((seconds * 1e9) as u64)
}
