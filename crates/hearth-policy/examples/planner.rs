//! How long a planner takes over a million pages, and over one miss. `cargo run --release --example
//! planner`.

use hearth_policy::pages::{Misses, PagePolicy, Planner, Sample};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

const PAGES: u32 = 1_000_000;
const NODES: u8 = 16;
const SECOND: u64 = 1_000_000_000;
/// Runs of each measurement; the median counts.
const RUNS: u64 = 15;

fn planner(policy: &PagePolicy) -> Result<Planner, Box<dyn Error>> {
    let mut planner = Planner::new(policy, NODES.into(), 4096)?;
    for page in (0..PAGES).rev() {
        planner.set_home(page, (page % u32::from(NODES)) as u8)?;
    }
    Ok(planner)
}

/// A page's samples: scattered over pages, nodes and counts.
fn scattered(index: u32) -> Sample {
    let page = (u64::from(index) * 611_953 % u64::from(PAGES)) as u32;
    let mixed = index.wrapping_mul(0x9E37_79B9) >> 8;
    Sample { page, node: (mixed % u32::from(NODES)) as u8, accesses: 1 + mixed % 200 }
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Milliseconds for a step in which every page has a sample.
fn step_ms(policy: &PagePolicy, in_order: bool) -> Result<f64, Box<dyn Error>> {
    let mut samples: Vec<Sample> = (0..PAGES).map(scattered).collect();
    if in_order {
        samples.sort_by_key(|sample| sample.page);
    }
    let mut planner = planner(policy)?;
    let mut moves = Vec::new();
    let mut times = Vec::new();
    for run in 0..RUNS {
        let now_ns = run * 20 * SECOND;
        let start = Instant::now();
        planner.step(now_ns, &samples, &mut moves);
        times.push(start.elapsed().as_secs_f64() * 1e3);
        for found in &moves {
            planner.moved(now_ns, found.page, found.to)?;
        }
    }
    Ok(median(times))
}

/// Nanoseconds for a miss, scattered over the pages.
fn miss_ns(policy: &PagePolicy) -> Result<f64, Box<dyn Error>> {
    let events: Vec<Sample> = (0..PAGES).map(scattered).collect();
    let mut planner = planner(policy)?;
    let mut times = Vec::new();
    for run in 0..RUNS {
        let start = Instant::now();
        for (index, event) in events.iter().enumerate() {
            let now_ns = run * SECOND + index as u64 * 1000;
            if let Some(found) = black_box(planner.miss(now_ns, event.page, event.node, Misses::Tlb)) {
                planner.moved(now_ns, found.page, found.to)?;
            }
        }
        times.push(start.elapsed().as_secs_f64() * 1e9 / events.len() as f64);
    }
    Ok(median(times))
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("a step of 1 M pages, ms; a miss, ns");
    println!("{:14} {:>12} {:>12} {:>12} {:>8}", "policy", "bytes a page", "in order", "scattered", "miss");
    for name in ["none", "competitive", "freeze", "hybrid", "dash", "linux"] {
        let policy = PagePolicy::load(name)?;
        let bytes = planner(&policy)?.bytes_per_page();
        let (in_order, scattered) = (step_ms(&policy, true)?, step_ms(&policy, false)?);
        println!("{name:14} {bytes:>12} {in_order:>12.1} {scattered:>12.1} {:>8.1}", miss_ns(&policy)?);
    }
    Ok(())
}
