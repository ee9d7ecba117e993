//! The best fixed places of pages, by cache misses and by TLB misses.

use super::counts::Counts;
use super::trace::Trace;
use serde::Serialize;

/// Points of the curves.
const POINTS: usize = 100;

/// With each page on the CPU that has most misses to it over the whole run: the share of all cache
/// misses that are local, as more and more pages are placed so, those with most cache misses first;
/// for 1, 2, ... 100 % of the pages, in percent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Placement {
    /// Most cache misses.
    pub by_cache: Vec<f64>,
    /// Most TLB misses; a page without any stays where it was dealt to.
    pub by_tlb: Vec<f64>,
}

impl Placement {
    /// Local misses with all pages placed, in percent: by cache misses, by TLB misses.
    pub fn local(&self) -> Option<(f64, f64)> {
        Some((*self.by_cache.last()?, *self.by_tlb.last()?))
    }
}

pub(super) fn placement(trace: &Trace<'_>, counts: &Counts) -> Placement {
    let order = counts.cache.hottest();
    let all = counts.cache.total().max(1) as f64;
    let curve = |table: &super::counts::Table| {
        let mut local = 0;
        let mut curve = Vec::with_capacity(order.len());
        for &page in &order {
            let place = table.holder(page).unwrap_or(trace.dealt()[page]);
            local += u64::from(counts.cache.of_page(page)[usize::from(place)]);
            curve.push(100.0 * local as f64 / all);
        }
        (1..=POINTS).map(|point| curve[(order.len() * point).div_ceil(POINTS) - 1]).collect()
    };
    Placement { by_cache: curve(&counts.cache), by_tlb: curve(&counts.tlb) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::log;
    use super::*;
    use hearth_hardware::MissKind::{Cache, Tlb};

    #[test]
    fn tlb_misses_may_point_to_the_wrong_cpu() {
        let many = |count, cpu, page, kind| (0..count).map(move |_| (1, cpu, page, kind));
        let misses = many(60, 0, 0, Cache)
            .chain(many(10, 1, 0, Cache))
            .chain(many(30, 1, 1, Cache))
            .chain(many(2, 1, 0, Tlb))
            .chain(many(1, 0, 0, Tlb));
        let log = log(misses.collect::<Vec<_>>());
        let trace = Trace::new(&log, 2).expect("a run");
        let placement = placement(&trace, &Counts::of(&trace));
        assert_eq!((placement.by_cache[0], placement.by_tlb[0]), (60.0, 10.0));
        // Page 1 has no TLB misses and stays on memory 1, to which it was dealt.
        assert_eq!(placement.local(), Some((90.0, 40.0)));
    }
}
