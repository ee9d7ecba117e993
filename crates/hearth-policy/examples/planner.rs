//! How long the planner of pages takes over a million pages, and the papers' variant over one miss.
//! `cargo run --release -p hearth-policy --example planner`.

use hearth_policy::pages::{InMiss, Misses, PagePolicy};
use hearth_policy::snapshot::{Memory, Moved, Page, Process};
use hearth_policy::{Controller, Snapshot, planners};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

const PAGES: u32 = 1_000_000;
/// Of pages that the planner knows at a time, as many as it can.
const KNOWN: u32 = 250_000;
const NODES: u8 = 16;
const PAGE_BYTES: u64 = 4096;
const SECOND: u64 = 1_000_000_000;
/// Runs of each measurement; the median counts.
const RUNS: u64 = 15;

/// Scatters over pages, nodes and counts.
fn scattered(index: u32) -> (u32, u8, u32) {
    let page = (u64::from(index) * 611_953 % u64::from(PAGES)) as u32;
    let mixed = index.wrapping_mul(0x9E37_79B9) >> 8;
    (page, (mixed % u32::from(NODES)) as u8, 1 + mixed % 200)
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// One process that ran on node 0, with its pages all over.
fn snapshot() -> Snapshot {
    let page = |index: u32| {
        let (_, home, accesses) = scattered(index);
        let address = u64::from(index) * PAGE_BYTES;
        Page { address, home: home.into(), accesses, order: 0 }
    };
    let pages = (0..KNOWN).map(page).collect();
    let process = Process { began: 1, ran_permille: vec![(0, 1000)], is_watched: true, pages };
    let memory = Memory {
        nodes: (0..NODES.into()).collect(),
        page_bytes: PAGE_BYTES,
        processes: [(1, process)].into(),
        moves: Vec::new(),
    };
    Snapshot::of_memory(0, memory)
}

/// Milliseconds for a step in which every page was used.
fn step_ms(policy: &PagePolicy) -> Result<f64, Box<dyn Error>> {
    let mut snapshot = snapshot();
    let mut controller = Controller::new(vec![Box::new(planners::Pages::new(policy))]);
    let mut times = Vec::new();
    for run in 0..RUNS {
        snapshot.at_ns = run * 20 * SECOND;
        let start = Instant::now();
        let plan = controller.step(&snapshot)?.pages;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        snapshot.memory.moves.clear();
        let pages = &mut snapshot.memory.processes.entry(1).or_default().pages;
        for found in &plan.moves {
            let page = &mut pages[found.page];
            page.home = found.to;
            let (address, at_ns) = (page.address, snapshot.at_ns);
            snapshot.memory.moves.push(Moved { process: 1, address, at_ns, end: Ok(found.to) });
        }
    }
    Ok(median(times))
}

/// Nanoseconds for a miss, scattered over the pages.
fn miss_ns(policy: &PagePolicy) -> Result<f64, Box<dyn Error>> {
    let events: Vec<_> = (0..PAGES).map(scattered).collect();
    let mut pages = InMiss::new(policy, NODES.into(), PAGE_BYTES)?;
    for page in (0..PAGES).rev() {
        pages.set_home(page, (page % u32::from(NODES)) as u8)?;
    }
    let mut times = Vec::new();
    for run in 0..RUNS {
        let start = Instant::now();
        for (index, &(page, node, _)) in events.iter().enumerate() {
            let now_ns = run * SECOND + index as u64 * 1000;
            if let Some(found) = black_box(pages.miss(now_ns, page, node, Misses::Tlb)) {
                pages.moved(now_ns, found.page, found.to)?;
            }
        }
        times.push(start.elapsed().as_secs_f64() * 1e9 / events.len() as f64);
    }
    Ok(median(times))
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("a step of {KNOWN} pages, ms; a miss to one of {PAGES}, ns");
    println!("{:14} {:>8} {:>8}", "policy", "step", "miss");
    for name in ["none", "competitive", "freeze", "hybrid", "dash", "linux"] {
        let policy = PagePolicy::load(name)?;
        println!("{name:14} {:>8.1} {:>8.1}", step_ms(&policy)?, miss_ns(&policy)?);
    }
    Ok(())
}
