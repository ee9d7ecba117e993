//! A straight line through samples, and how well it is known.
//!
//! Both ways give the line as `y = level + slope (x - centre)`, with errors of `level` and `slope` that are
//! as good as independent. So the error anywhere on the line is their sum of squares, and grows with the
//! distance from where the samples are.

/// How a line is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// Ordinary least squares: best where errors are alike. One sample that is far off moves it at will.
    #[default]
    LeastSquares,
    /// The median of the slopes between all pairs of samples (Theil 1950, Sen 1968): bears a quarter of
    /// samples that are far off, and takes time with the square of their number.
    Robust,
}

/// A line, with standard errors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// What `y` grows by with each `x`.
    pub slope: f64,
    /// `y` where `x` is 0.
    pub intercept: f64,
    /// The middle of all `x`.
    pub centre: f64,
    /// The standard error of `y` on the line at the centre.
    pub level_error: f64,
    /// The standard error of the slope.
    pub slope_error: f64,
    /// How far samples are off the line: their standard deviation.
    pub residual: f64,
}

/// Samples that it takes to know a line's errors.
const FEWEST: usize = 3;

/// The standard deviation of what is distributed normally, for a median of absolute deviations of 1.
const DEVIATION_FOR_MEDIAN: f64 = 1.482_602_218_505_602;

impl Fit {
    /// The line through samples `(x, y)`; nothing if there are fewer than three, or `x` is always the same.
    pub fn line(self, samples: &[(f64, f64)]) -> Option<Line> {
        let finite = samples.iter().all(|(x, y)| x.is_finite() && y.is_finite());
        if samples.len() < FEWEST || !finite {
            return None;
        }
        match self {
            Self::LeastSquares => least_squares(samples),
            Self::Robust => robust(samples),
        }
    }

    /// The middle of values, and its standard error; nothing if there are none. Sorts them.
    pub(super) fn middle(self, values: &mut [f64]) -> Option<(f64, f64)> {
        if values.is_empty() {
            return None;
        }
        let count = values.len() as f64;
        if self == Self::Robust {
            values.sort_unstable_by(f64::total_cmp);
            return Some((median(values), half_width(values, count.sqrt())));
        }
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some((mean, (squares / (count - 1.0).max(1.0) / count).sqrt()))
    }
}

impl Line {
    /// `y` on the line.
    pub fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }

    /// The standard error of `y` on the line.
    pub fn error_at(&self, x: f64) -> f64 {
        self.level_error.hypot((x - self.centre) * self.slope_error)
    }
}

fn least_squares(samples: &[(f64, f64)]) -> Option<Line> {
    let count = samples.len() as f64;
    let centre = samples.iter().map(|(x, _)| x).sum::<f64>() / count;
    let level = samples.iter().map(|(_, y)| y).sum::<f64>() / count;
    let widest = samples.iter().map(|(x, _)| x.abs()).fold(0.0, f64::max);
    let of_x: f64 = samples.iter().map(|(x, _)| (x - centre).powi(2)).sum();
    // What is left of equal numbers after rounding is no spread.
    if of_x <= count * (4.0 * f64::EPSILON * widest).powi(2) {
        return None;
    }
    let of_both: f64 = samples.iter().map(|(x, y)| (x - centre) * (y - level)).sum();
    let slope = of_both / of_x;
    let squares: f64 = samples.iter().map(|(x, y)| (y - level - slope * (x - centre)).powi(2)).sum();
    let residual = (squares / (count - 2.0)).sqrt();
    Some(Line {
        slope,
        intercept: level - slope * centre,
        centre,
        level_error: residual / count.sqrt(),
        slope_error: residual / of_x.sqrt(),
        residual,
    })
}

fn robust(samples: &[(f64, f64)]) -> Option<Line> {
    let mut slopes = slopes(samples);
    if slopes.is_empty() {
        return None;
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let slope = median(&slopes);
    let mut x: Vec<f64> = samples.iter().map(|(x, _)| *x).collect();
    x.sort_unstable_by(f64::total_cmp);
    let mut off: Vec<f64> = samples.iter().map(|(x, y)| y - slope * x).collect();
    off.sort_unstable_by(f64::total_cmp);
    let intercept = median(&off);
    let level_error = half_width(&off, (off.len() as f64).sqrt());
    off.iter_mut().for_each(|value| *value = (*value - intercept).abs());
    off.sort_unstable_by(f64::total_cmp);
    Some(Line {
        slope,
        intercept,
        centre: median(&x),
        level_error,
        slope_error: half_width(&slopes, deviation_of_ranks(&x)),
        residual: DEVIATION_FOR_MEDIAN * median(&off),
    })
}

fn slopes(samples: &[(f64, f64)]) -> Vec<f64> {
    let pairs = samples.iter().enumerate().flat_map(|(place, one)| {
        let later = samples[place + 1..].iter();
        later.map(move |other| (other.0 - one.0, other.1 - one.1))
    });
    pairs.filter(|(dx, _)| *dx != 0.0).map(|(dx, dy)| dy / dx).filter(|slope| slope.is_finite()).collect()
}

/// The standard deviation of Kendall's statistic where `y` does not depend on `x`, which is sorted: so many
/// ranks of slopes are within a standard error on both sides of the median. (Sen 1968, equation 2.6.)
fn deviation_of_ranks(x: &[f64]) -> f64 {
    let term = |count: f64| count * (count - 1.0) * (2.0 * count + 5.0);
    let ties: f64 = x.chunk_by(|one, other| one == other).map(|tied| term(tied.len() as f64)).sum();
    ((term(x.len() as f64) - ties).max(0.0) / 18.0).sqrt()
}

fn median(sorted: &[f64]) -> f64 {
    at_rank(sorted, (sorted.len() as f64 - 1.0) / 2.0)
}

/// Half of the distance between the values that are so many ranks apart, in the middle.
fn half_width(sorted: &[f64], ranks: f64) -> f64 {
    let middle = (sorted.len() as f64 - 1.0) / 2.0;
    (at_rank(sorted, middle + ranks / 2.0) - at_rank(sorted, middle - ranks / 2.0)) / 2.0
}

/// The value of a rank from 0, which may be between two.
fn at_rank(sorted: &[f64], rank: f64) -> f64 {
    let rank = rank.clamp(0.0, sorted.len().saturating_sub(1) as f64);
    let (below, part) = (rank.floor() as usize, rank.fract());
    let value = |place: usize| sorted.get(place).or(sorted.last()).copied().unwrap_or_default();
    value(below) + part * (value(below + 1) - value(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_slopes_deviate_less_where_samples_are_tied() {
        let all: Vec<f64> = (0..10).map(f64::from).collect();
        // 10 x 9 x 25 / 18, and less 2 x (5 x 4 x 15) / 18.
        assert_eq!(deviation_of_ranks(&all).powi(2).round(), 125.0);
        let two: Vec<f64> = (0..10).map(|place| f64::from(place / 5)).collect();
        assert_eq!((deviation_of_ranks(&two).powi(2) * 18.0).round(), 1650.0);
        assert_eq!(deviation_of_ranks(&[1.0; 10]), 0.0);
    }

    #[test]
    fn what_has_no_line_has_none() {
        for fit in [Fit::LeastSquares, Fit::Robust] {
            assert_eq!(fit.line(&[(0.0, 1.0), (1.0, 2.0)]), None);
            assert_eq!(fit.line(&[(0.1, 1.0), (0.1, 2.0), (0.1, 3.0)]), None);
            assert_eq!(fit.line(&[(0.0, 1.0), (1.0, f64::NAN), (2.0, 2.0)]), None);
            assert!(fit.line(&[(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]).is_some());
        }
    }
}
