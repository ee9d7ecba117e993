//! A measure over several runs.

use serde::Serialize;

/// A measure over the seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// The mean.
    pub mean: f64,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl Figure {
    /// The mean and spread of some values; all 0 if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (values.first(), values.last()) else { return Self::default() };
        Self { mean: values.iter().sum::<f64>() / values.len() as f64, low, high }
    }

    /// In another unit.
    pub fn scaled(&self, factor: f64) -> Self {
        Self { mean: self.mean * factor, low: self.low * factor, high: self.high * factor }
    }

    /// How much greater the mean is than another, in percent; 0 if the other is 0.
    pub fn change_percent(&self, base: &Figure) -> f64 {
        if base.mean == 0.0 { 0.0 } else { (self.mean / base.mean - 1.0) * 100.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_mean_between_the_least_and_the_greatest() {
        let figure = Figure::of([4.0, 1.0, 7.0]);
        assert_eq!(figure, Figure { mean: 4.0, low: 1.0, high: 7.0 });
        assert_eq!(Figure::of([7.0]).mean, 7.0);
        assert_eq!(Figure::of([]), Figure::default());
    }

    #[test]
    fn a_change_is_in_percent_of_the_base() {
        let (base, other) = (Figure::of([4.0]), Figure::of([3.0]));
        assert_eq!(other.change_percent(&base), -25.0);
        assert_eq!(other.change_percent(&Figure::default()), 0.0);
    }
}
