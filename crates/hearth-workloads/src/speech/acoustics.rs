//! The acoustic model: mixtures of Gaussians with diagonal covariances, and their scores.

use hearth_hardware::{Placement, Segment};
use hearth_sim::memory::Memory;
use hearth_sim::program::Cpu;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// Tied states, Gaussians of each, and dimensions: those of `hub4_cd_continuous_8gau_1s_c_d_dd`, 6,000 senones, one
/// of the models that the authors of Sphinx published ("Continuous Broadcast News Acoustic Models").
pub(super) const SENONES: usize = 6_000;
const GAUSSIANS: usize = 8;
pub(super) const DIMENSIONS: usize = 39;

/// Bytes of the means, or of the inverse variances, of a Gaussian: four a dimension.
const VECTOR_BYTES: u64 = 4 * DIMENSIONS as u64;
/// Cycles of a dimension beside its loads: a difference, a square, a product and a sum.
const DIMENSION_CYCLES: u64 = 4;

/// How far from its senone's mean, in standard deviations, what is spoken is at most.
const NOISE: f32 = 0.5;

/// One frame of speech, 10 ms.
pub(super) type Features = [f32; DIMENSIONS];

/// The model.
pub(super) struct Acoustics {
    means: Vec<Features>,
    inverse_variances: Vec<Features>,
    /// Where the vectors lie: 15 MB in all.
    mean: Segment,
    inverse_variance: Segment,
}

/// A number from -1 up to 1.
fn draw(random: &mut Pcg32) -> f32 {
    random.next_u32() as f32 / (u32::MAX as f32 / 2.0) - 1.0
}

impl Acoustics {
    /// A model of senones that lie at random.
    pub(super) fn new(memory: &Memory, seed: u64) -> Self {
        let mut random = Pcg32::seed_from_u64(seed);
        let gaussians = SENONES * GAUSSIANS;
        let vectors = || memory.segment(gaussians as u64 * VECTOR_BYTES, Placement::FirstTouch);
        Self {
            means: (0..gaussians).map(|_| std::array::from_fn(|_| 3.0 * draw(&mut random))).collect(),
            inverse_variances: (0..gaussians)
                .map(|_| std::array::from_fn(|_| 1.0 + 0.5 * draw(&mut random)))
                .collect(),
            mean: vectors(),
            inverse_variance: vectors(),
        }
    }

    /// What a senone sounds like, once.
    pub(super) fn speak(&self, random: &mut Pcg32, senone: usize) -> Features {
        let gaussian = senone * GAUSSIANS + random.next_u32() as usize % GAUSSIANS;
        let mean = self.means[gaussian];
        mean.map(|mean| mean + NOISE * draw(random))
    }

    /// Scores all senones against a frame: of each, the logarithm of its best Gaussian's density, but for constants.
    pub(super) fn score(&self, cpu: &mut Cpu<'_>, frame: &Features, scores: &mut [f32]) {
        for (senone, score) in scores.iter_mut().enumerate() {
            *score = f32::MIN;
            for gaussian in senone * GAUSSIANS..(senone + 1) * GAUSSIANS {
                let offset = gaussian as u64 * VECTOR_BYTES;
                cpu.read_span(self.mean.base + offset, VECTOR_BYTES);
                cpu.read_span(self.inverse_variance.base + offset, VECTOR_BYTES);
                cpu.compute(DIMENSION_CYCLES * DIMENSIONS as u64);
                *score = score.max(self.density(gaussian, frame));
            }
        }
    }

    fn density(&self, gaussian: usize, frame: &Features) -> f32 {
        let model = self.means[gaussian].iter().zip(&self.inverse_variances[gaussian]);
        let distance: f32 = model
            .zip(frame)
            .map(|((mean, inverse_variance), x)| (x - mean) * (x - mean) * inverse_variance)
            .sum();
        -0.5 * distance
    }
}
