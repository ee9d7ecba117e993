//! Are the pages with many TLB misses those with many cache misses?

use super::counts::Counts;

/// For the hottest 1, 2, ... 100 % of pages by TLB misses, rounded up: how many of them, in percent,
/// are among the hottest as many by cache misses.
pub(super) fn curve(counts: &Counts) -> Vec<f64> {
    let (by_tlb, by_cache) = (counts.tlb.hottest(), counts.cache.hottest());
    let pages = by_tlb.len();
    // A page is among the first n of both orders from the later of its two places on.
    let mut place = vec![0; pages];
    by_cache.iter().enumerate().for_each(|(rank, &page)| place[page] = rank);
    let mut joins = vec![0usize; pages];
    by_tlb.iter().enumerate().for_each(|(rank, &page)| joins[rank.max(place[page])] += 1);
    let mut common = 0;
    let both: Vec<usize> = joins
        .iter()
        .map(|joining| {
            common += joining;
            common
        })
        .collect();
    let share = |percent: usize| {
        let taken = (pages * percent).div_ceil(100);
        100.0 * both[taken - 1] as f64 / taken as f64
    };
    (1..=100).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::log;
    use super::super::trace::Trace;
    use super::*;
    use hearth_hardware::MissKind::{Cache, Tlb};

    fn curve_of(misses: &[(u32, u32)]) -> Vec<f64> {
        let of_page = |(page, &(tlb, cache)): (usize, &(u32, u32))| {
            let page = page as u32;
            let kinds = [(Tlb, tlb), (Cache, cache)];
            kinds.into_iter().flat_map(move |(kind, count)| (0..count).map(move |_| (1, 0, page, kind)))
        };
        let log = log(misses.iter().enumerate().flat_map(of_page).collect::<Vec<_>>());
        curve(&Counts::of(&Trace::new(&log, 1).expect("a run")))
    }

    #[test]
    fn equal_orders_overlap_whole() {
        assert!(curve_of(&[(1, 10), (2, 20), (3, 30), (9, 31)]).iter().all(|share| *share == 100.0));
    }

    #[test]
    fn opposite_orders_overlap_from_the_middle_on() {
        let curve = curve_of(&[(1, 40), (2, 30), (3, 20), (4, 10)]);
        let at = |percent: usize| curve[percent - 1];
        assert_eq!((at(25), at(50), at(100)), (0.0, 0.0, 100.0));
        assert!((at(75) - 200.0 / 3.0).abs() < 1e-9);
    }
}
