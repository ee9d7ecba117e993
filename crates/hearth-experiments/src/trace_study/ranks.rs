//! Is the CPU with most TLB misses to a page the one with most cache misses?

use super::counts::Counts;
use super::trace::Trace;
use serde::Serialize;

/// In each stretch of this length,
const WINDOW_NS: u64 = 1_000_000_000;
/// pages with more cache misses than these count.
const HOT: u64 = 500;

/// Over all hot pages of all seconds: where the CPU with most cache misses to the page in that second
/// stands among the CPUs with misses to it, ordered by TLB misses. CPUs with equally many share the
/// middle of their places.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranks {
    /// Hot pages, each second anew.
    pub pages: u64,
    /// Mean of the ranks; nothing without hot pages.
    pub mean: Option<f64>,
    /// How many pages have the rank 1, 2, ..., one for each CPU; halves count for the greater.
    pub histogram: Vec<u64>,
}

pub(super) fn ranks(trace: &Trace<'_>) -> Ranks {
    let mut ranks = Ranks { pages: 0, mean: None, histogram: vec![0; trace.cpus()] };
    let mut sum = 0.0;
    let mut counts = Counts::new(trace);
    let mut end_ns = WINDOW_NS;
    for event in trace.events() {
        if event.at_ns >= end_ns {
            sum += ranks.take(&counts);
            counts.clear();
            end_ns = (event.at_ns / WINDOW_NS + 1) * WINDOW_NS;
        }
        counts.add(&event);
    }
    sum += ranks.take(&counts);
    ranks.mean = (ranks.pages > 0).then(|| sum / ranks.pages as f64);
    ranks
}

impl Ranks {
    /// Adds the hot pages of a window; the sum of their ranks.
    fn take(&mut self, counts: &Counts) -> f64 {
        let hot = (0..counts.cache.pages()).filter(|&page| counts.cache.sum(page) > HOT);
        let mut sum = 0.0;
        for rank in hot.filter_map(|page| rank(counts, page)) {
            self.pages += 1;
            let bar = (rank.round() as usize).clamp(1, self.histogram.len()) - 1;
            self.histogram[bar] += 1;
            sum += rank;
        }
        sum
    }
}

fn rank(counts: &Counts, page: usize) -> Option<f64> {
    let holder = usize::from(counts.cache.holder(page)?);
    let (tlb, cache) = (counts.tlb.of_page(page), counts.cache.of_page(page));
    let others = (0..tlb.len()).filter(|&cpu| cpu != holder && tlb[cpu] + cache[cpu] > 0);
    let places = others.map(|cpu| match tlb[cpu].cmp(&tlb[holder]) {
        std::cmp::Ordering::Greater => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Less => 0.0,
    });
    Some(1.0 + places.sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::super::tests::log;
    use super::*;
    use hearth_hardware::MissKind::{Cache, Tlb};

    /// One page; for each CPU its TLB and cache misses, at some second.
    fn ranks_of(seconds: &[(u64, &[(u32, u32)])]) -> Ranks {
        let mut misses = Vec::new();
        for &(second, cpus) in seconds {
            for (cpu, &(tlb, cache)) in cpus.iter().enumerate() {
                misses.extend((0..tlb).map(|_| (second * 1000, cpu, 7, Tlb)));
                misses.extend((0..cache).map(|_| (second * 1000, cpu, 7, Cache)));
            }
        }
        let log = log(misses);
        ranks(&Trace::new(&log, 4).expect("a run"))
    }

    #[test]
    fn the_cpu_with_most_of_both_is_first() {
        let ranks = ranks_of(&[(0, &[(5, 0), (20, 501), (9, 3)])]);
        assert_eq!((ranks.pages, ranks.mean, ranks.histogram), (1, Some(1.0), vec![1, 0, 0, 0]));
    }

    #[test]
    fn each_cpu_with_more_tlb_misses_is_ahead_and_equals_share() {
        assert_eq!(ranks_of(&[(0, &[(30, 0), (20, 501), (40, 3)])]).mean, Some(3.0));
        assert_eq!(ranks_of(&[(0, &[(20, 0), (20, 501), (40, 3)])]).mean, Some(2.5));
        assert_eq!(ranks_of(&[(0, &[(0, 0), (0, 501), (0, 0)])]).mean, Some(1.0), "nobody else missed");
    }

    #[test]
    fn each_second_counts_anew_and_only_hot_pages_do() {
        assert_eq!(ranks_of(&[(0, &[(0, 400)]), (2, &[(0, 400)])]).mean, None);
        let ranks = ranks_of(&[(0, &[(1, 600)]), (3, &[(9, 100), (1, 600)])]);
        assert_eq!((ranks.pages, ranks.mean), (2, Some(1.5)));
    }
}
