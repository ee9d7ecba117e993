//! Miss-rate curves: how many references of a thousand instructions miss a fully associative LRU data cache, by
//! its size; and the LRU stack depths that follow from a curve (Mattson, Gecsei, Slutz and Traiger, "Evaluation
//! Techniques for Storage Hierarchies", IBM Systems Journal 1970).

/// Where a point of a curve comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Published, and read there.
    Read,
    /// Published, and quoted from memory: the publication could not be had.
    Recalled,
    /// Follows from what a publication says.
    Derived,
    /// By the rule of [`Curve::new`] for small caches.
    Rule,
}

/// Misses at one size of cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Size of the cache in KB.
    pub kib: u32,
    /// Misses of 1,000 instructions.
    pub misses: f64,
    /// Where the number comes from.
    pub origin: Origin,
}

/// The size at which curves begin: the first-level data cache. Smaller ones are not asked for.
pub const FIRST_KIB: u32 = 8;

/// How much smaller caches miss than one of 64 KB: the averages over all of SPEC CPU2000, 8-way with 64-byte
/// blocks, by Cantin and Hill, as in Hennessy and Patterson, "Computer Architecture", 5th edition, figure B.8.
/// Recalled: 0.044 of references miss 8 KB, 0.041 16 KB, 0.037 32 KB, 0.029 64 KB.
const OF_64_KIB: [(u32, f64); 3] = [(FIRST_KIB, 44.0 / 29.0), (16, 41.0 / 29.0), (32, 37.0 / 29.0)];

/// A curve. Between its points the logarithm of misses is linear in that of the size. The last point is the
/// program's footprint: what misses even there goes through memory in a stream, round and round.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    points: Vec<Point>,
}

impl Curve {
    /// The curve through `points`, of rising sizes from 64 KB and falling misses. Smaller caches miss more by
    /// what they do on the average of the suite.
    pub fn new(points: &[Point]) -> Self {
        let at_64 = points[0].misses;
        let small = OF_64_KIB.map(|(kib, more)| Point { kib, misses: at_64 * more, origin: Origin::Rule });
        Self { points: small.iter().chain(points).copied().collect() }
    }

    /// Its points, those of small caches among them.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Misses of 1,000 instructions in a cache of `kib` KB.
    pub fn misses(&self, kib: f64) -> f64 {
        let last = self.points.len() - 1;
        match self.points.iter().position(|point| f64::from(point.kib) > kib) {
            Some(0) => self.points[0].misses,
            None => self.points[last].misses,
            Some(after) => {
                let [from, to] = [self.points[after - 1], self.points[after]];
                let along = (kib / f64::from(from.kib)).ln() / (f64::from(to.kib) / f64::from(from.kib)).ln();
                from.misses * (to.misses / from.misses).powf(along)
            }
        }
    }

    /// The program's footprint in KB.
    pub fn footprint_kib(&self) -> u32 {
        self.points[self.points.len() - 1].kib
    }

    /// The size in KB from which on a reference hits that misses [`FIRST_KIB`], for a number drawn from 0 up to
    /// 1; the footprint if none does.
    pub fn depth_kib(&self, drawn: f64) -> f64 {
        let misses = self.points[0].misses * (1.0 - drawn);
        let after = self.points.iter().position(|point| point.misses < misses);
        match after {
            Some(0) => f64::from(FIRST_KIB),
            None => f64::from(self.footprint_kib()),
            Some(after) => {
                let [from, to] = [self.points[after - 1], self.points[after]];
                let along = (misses / from.misses).ln() / (to.misses / from.misses).ln();
                f64::from(from.kib) * (f64::from(to.kib) / f64::from(from.kib)).powf(along)
            }
        }
    }

    /// Misses of 1,000 instructions in a set-associative cache in which lines lie at random: a reference misses if
    /// `ways` of the lines that were used since are in its set (Hill and Smith, "Evaluating Associativity in CPU
    /// Caches", IEEE Transactions on Computers 1989).
    pub fn misses_in(&self, kib: f64, ways: u32) -> f64 {
        const DRAWS: u32 = 10_000;
        let missed = |draw: u32| {
            let depth_kib = self.depth_kib((f64::from(draw) + 0.5) / f64::from(DRAWS));
            poisson_from(ways, depth_kib / kib * f64::from(ways))
        };
        self.points[0].misses * (0..DRAWS).map(missed).sum::<f64>() / f64::from(DRAWS)
    }
}

/// The probability of `least` or more, where `mean` are expected.
fn poisson_from(least: u32, mean: f64) -> f64 {
    let mut exactly = (-mean).exp();
    let mut fewer = 0.0;
    for count in 0..least {
        fewer += exactly;
        exactly *= mean / f64::from(count + 1);
    }
    1.0 - fewer
}

#[cfg(test)]
mod tests {
    use super::super::PROGRAMS;
    use super::*;
    use proptest::prelude::*;

    fn curves() -> impl Iterator<Item = Curve> {
        PROGRAMS.into_iter().map(super::super::Program::curve)
    }

    #[test]
    fn misses_fall_as_caches_grow() {
        for curve in curves() {
            assert!(curve.points().is_sorted_by(|a, b| a.kib < b.kib && a.misses >= b.misses), "{curve:?}");
            assert!(
                curve.points()[0].misses < 1000.0 && curve.points().iter().all(|point| point.misses > 0.0)
            );
        }
    }

    #[test]
    fn a_curve_goes_through_its_points() {
        for curve in curves() {
            for point in curve.points() {
                let misses = curve.misses(f64::from(point.kib));
                assert!((misses / point.misses - 1.0).abs() < 1e-9, "{point:?}: {misses}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_drawn_as_a_depth_has_the_curve_as_its_distribution(drawn in 0.0..1.0f64) {
            for curve in curves() {
                let wanted = (1.0 - drawn) * curve.points()[0].misses;
                let misses = curve.misses(curve.depth_kib(drawn));
                let last = curve.points()[curve.points().len() - 1].misses;
                prop_assert!((misses - wanted.max(last)).abs() < 1e-6, "{misses} {wanted}");
            }
        }
    }

    #[test]
    fn many_ways_miss_as_full_associativity_does_and_few_more() {
        for curve in curves() {
            let [full, one, many] =
                [curve.misses(300.0), curve.misses_in(300.0, 1), curve.misses_in(300.0, 500)];
            assert!((many / full - 1.0).abs() < 0.03, "{many} {full}");
            assert!(one > full, "{one} {full}");
        }
    }
}
