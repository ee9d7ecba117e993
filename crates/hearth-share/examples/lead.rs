//! Leads for some seconds, as `hearth exec` does, and prints what that took:
//! `cargo run --release -p hearth-share --example lead -- SECONDS`

use hearth_share::leader::STEP;
use hearth_share::{Leader, pages};
use std::time::{Duration, Instant};

fn main() {
    let seconds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(10);
    let mut leader = Leader::new(&pages::own_folder());
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds) {
        leader.step(Instant::now());
        std::thread::sleep(STEP);
    }
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu_s = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
    println!(
        "leads: {}, followers: {}, CPU time {:.3} s of {seconds} s ({:.2} % of a CPU), a look at all processes {:.1?}",
        leader.leads(),
        leader.followers(),
        cpu_s,
        100.0 * cpu_s / seconds as f64,
        leader.observer().scan_cost()
    );
}
