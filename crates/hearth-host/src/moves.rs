//! What a move costs on the machine that this runs on, measured: a private cache is filled with data, and read again
//! from another CPU.

use hearth_machine::MoveCosts;
use hearth_machine::host::HostTopology;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::thread;
use std::time::{Duration, Instant};

const LINE_BYTES: usize = 64;
/// More than this of a private cache is not tried; what a move costs grows with its lines.
const MOST_BYTES: usize = 4 << 20;
/// How often each move is made. The second least counts, for other tasks come between.
const MOVES: usize = 5;
/// All moves together take no longer.
const MOST_TIME: Duration = Duration::from_millis(300);
/// What is measured is believed if it is no less than this part of what sizes and distances say, for an emulator may
/// have no caches;
const BELIEVED_PART: u64 = 8;
/// and if a line takes no longer: a busy host has others come between, and a hypervisor may lie.
const BELIEVED_LINE_NS: u64 = 1000;
const BELIEVED_NS: u64 = 10_000_000;

/// What moves cost, and whether that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    /// The costs.
    pub costs: MoveCosts,
    /// Which of them were measured: to another CPU of the cache, to another cache, to another node. The others
    /// follow from sizes and distances.
    pub is_measured: [bool; 3],
}

/// Measures what moves cost. It takes some 50 ms of a CPU where caches are of 1 MiB, and 300 ms at most.
pub fn measure(host: &HostTopology) -> Moves {
    let computed = host.move_costs();
    let bytes = usize::try_from(host.private_bytes()).unwrap_or(MOST_BYTES);
    let measured = thread::scope(|scope| {
        // Its mask is its own, and ends with it.
        let thread = scope.spawn(|| {
            let data = Data::new(bytes.clamp(LINE_BYTES, MOST_BYTES));
            let until = Instant::now() + MOST_TIME;
            pairs(host).map(|pair| pair.and_then(|(from, to)| data.cost_of_move(from, to, until)))
        });
        thread.join().unwrap_or_default()
    });
    believe(computed, measured, bytes as u64)
}

/// Measured costs where they can be true; no move costs less than a nearer one.
fn believe(computed: MoveCosts, measured: [Option<u64>; 3], bytes: u64) -> Moves {
    let whole = |ns: u64| ns.saturating_mul(bytes) / bytes.clamp(1, MOST_BYTES as u64);
    let mut is_measured = [false; 3];
    let mut cost = |level: usize, computed_ns: u64, least_ns: u64| {
        let most_ns = (bytes / LINE_BYTES as u64).saturating_mul(BELIEVED_LINE_NS).min(BELIEVED_NS);
        let bounds = computed_ns / BELIEVED_PART..=most_ns;
        let believed = measured[level].map(whole).filter(|ns| bounds.contains(ns));
        is_measured[level] = believed.is_some();
        believed.unwrap_or(computed_ns).max(least_ns)
    };
    let cpu_ns = cost(0, computed.cpu_ns, 0);
    let cache_ns = cost(1, computed.cache_ns, cpu_ns);
    let node_ns = cost(2, computed.node_ns, cache_ns);
    Moves { costs: MoveCosts { cpu_ns, cache_ns, node_ns }, is_measured }
}

/// For each kind of move two CPUs between which it is one, if there are.
fn pairs(host: &HostTopology) -> [Option<(usize, usize)>; 3] {
    let (domains, cores) = (host.domains(), host.cores());
    let domain_of = |cpu: usize| domains.iter().position(|domain| domain.contains(&cpu));
    let core_of = |cpu: usize| cores.iter().position(|core| core.contains(&cpu));
    let node_of = |cpu: usize| host.nodes.iter().find(|node| node.cpus.contains(&cpu)).map(|node| node.id);
    let Some(first) = host.cpus.first().map(|cpu| cpu.id) else { return [None; 3] };
    let others = || host.cpus.iter().map(|cpu| cpu.id).filter(|cpu| core_of(*cpu) != core_of(first));
    let pair = |is_one: &dyn Fn(usize) -> bool| others().find(|cpu| is_one(*cpu)).map(|cpu| (first, cpu));
    [
        pair(&|cpu| domain_of(cpu) == domain_of(first)),
        pair(&|cpu| domain_of(cpu) != domain_of(first) && node_of(cpu) == node_of(first)),
        pair(&|cpu| node_of(cpu) != node_of(first)),
    ]
}

/// What fills a private cache, and an order in which no prefetcher foresees it.
struct Data {
    lines: Vec<[u8; LINE_BYTES]>,
    order: Vec<u32>,
}

impl Data {
    fn new(bytes: usize) -> Self {
        let count = bytes / LINE_BYTES;
        let mut order: Vec<u32> = (0..count as u32).collect();
        let mut random = 1u64;
        for last in (1..count).rev() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            order.swap(last, (random >> 33) as usize % (last + 1));
        }
        Self { lines: vec![[1; LINE_BYTES]; count], order }
    }

    /// How long it takes to read each line.
    fn walk(&self) -> Duration {
        let begin = Instant::now();
        let sum = self.order.iter().fold(0, |sum: u8, line| sum.wrapping_add(self.lines[*line as usize][0]));
        std::hint::black_box(sum);
        begin.elapsed()
    }

    /// By how much longer than on the CPU where it is warm, in nanoseconds; `None` where it may not run there.
    fn cost_of_move(&self, from: usize, to: usize, until: Instant) -> Option<u64> {
        let mut costs = Vec::new();
        for _ in 0..MOVES {
            if Instant::now() >= until {
                break;
            }
            pin(from)?;
            self.walk();
            let warm = self.walk();
            pin(to)?;
            costs.push(self.walk().saturating_sub(warm).as_nanos() as u64);
        }
        costs.sort_unstable();
        costs.get(1).copied()
    }
}

fn pin(cpu: usize) -> Option<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COMPUTED: MoveCosts = MoveCosts { cpu_ns: 160_000, cache_ns: 490_000, node_ns: 900_000 };

    #[test]
    fn what_can_be_true_is_believed() {
        let moves = believe(COMPUTED, [Some(300_000), Some(1_800_000), None], 1 << 20);
        assert_eq!(moves.costs, MoveCosts { cpu_ns: 300_000, cache_ns: 1_800_000, node_ns: 1_800_000 });
        assert_eq!(moves.is_measured, [true, true, false]);
    }

    #[test]
    fn of_a_larger_cache_a_part_is_measured() {
        let moves = believe(COMPUTED, [Some(100_000), None, None], 2 * MOST_BYTES as u64);
        assert_eq!(moves.costs.cpu_ns, 200_000);
    }

    #[test]
    fn what_an_emulator_says_is_not_believed() {
        assert_eq!(believe(COMPUTED, [Some(0), Some(900), Some(u64::MAX)], 1 << 20).costs, COMPUTED);
    }

    #[test]
    fn this_machine_is_measured_in_time() {
        let host = hearth_machine::host::read("/".as_ref()).unwrap();
        let Moves { costs: MoveCosts { cpu_ns, cache_ns, node_ns }, .. } = measure(&host);
        assert!(cpu_ns <= cache_ns && cache_ns <= node_ns);
    }

    proptest! {
        #[test]
        fn costs_grow_with_the_distance(measured in any::<[Option<u64>; 3]>(), bytes in any::<u64>()) {
            let MoveCosts { cpu_ns, cache_ns, node_ns } = believe(COMPUTED, measured, bytes).costs;
            prop_assert!(0 < cpu_ns && cpu_ns <= cache_ns && cache_ns <= node_ns);
            prop_assert!(node_ns <= BELIEVED_NS);
        }
    }
}
