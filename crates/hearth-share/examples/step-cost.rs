//! Prints what a step of the rule costs on large machines:
//! `cargo run --release -p hearth-share --example step-cost`

use hearth_share::steady::{Look, Present, Steady};
use hearth_share::{Application, Demand, Group, Mask};
use std::time::{Duration, Instant};

const CPUS: usize = 1024;
const STEPS: u32 = 50;

/// Applications in groups of ten, each second one bound to one of `masks` parts of the machine. Half
/// follow; a tenth of those is idle, and lends.
fn look(applications: usize, masks: usize) -> Look {
    let mut demand = Demand::of_machine(Mask::new(0..CPUS));
    for group in 0..applications.div_ceil(10) {
        demand.groups.push(Group { parent: group / 10, weight: 100.0, quota: 64.0 });
    }
    let part = |at: usize| Mask::new(at * CPUS / masks..(at + 1) * CPUS / masks);
    let parts: Vec<usize> = (0..masks).map(|at| demand.mask(&part(at))).collect();
    let (mut followers, mut others) = (Vec::new(), Vec::new());
    for at in 0..applications {
        let mask = if at % 2 == 0 { 0 } else { parts[at / 2 % masks] };
        let used = if at % 20 == 0 { 0.0 } else { 1.0 };
        if at % 4 < 2 {
            followers.push(Present { id: (at as i32, 0), application: at, used, before: 0.0, told: 0 });
        } else {
            others.push((at, used));
        }
        demand.applications.push(Application { group: 1 + at / 10, weight: 1024.0, mask, want: 64.0 });
    }
    Look { demand, followers, others, others_use: 500.0 }
}

fn main() {
    for (applications, masks) in [(10, 2), (100, 8), (1000, 8), (1000, 64)] {
        let mut steady = Steady::default();
        let mut worst = Duration::ZERO;
        let begin = Instant::now();
        for _ in 0..STEPS {
            let look = look(applications, masks);
            let begin = Instant::now();
            steady.step(look);
            worst = worst.max(begin.elapsed());
        }
        let mean = begin.elapsed() / STEPS;
        println!(
            "{applications:>5} applications, {masks:>2} masks, {CPUS} CPUs: mean {mean:.2?}, worst {worst:.2?}"
        );
    }
}
