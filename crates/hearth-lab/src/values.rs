//! Values of options, checked.

use std::ops::RangeInclusive;

/// The length of programs: above 0 and up to 1.
pub fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale > 0.0 && scale <= 1.0 => Ok(scale),
        _ => Err("give a number above 0 and up to 1, which is the paper's size".to_owned()),
    }
}

/// A count in a range that says how to mend a value outside of it.
pub fn count(text: &str, range: RangeInclusive<usize>) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(count) if range.contains(&count) => Ok(count),
        _ => Err(format!("give a whole number from {} to {}", range.start(), range.end())),
    }
}

/// How many seeds: the seeds are 1 up to that.
pub fn seeds(text: &str) -> Result<u64, String> {
    Ok(count(text, 1..=1000)? as u64)
}

/// How many runs at a time.
pub fn jobs(text: &str) -> Result<usize, String> {
    count(text, 1..=1024)
}

/// As many runs at a time as this host has CPUs for this process.
pub fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_above_0_and_up_to_1() {
        assert_eq!(scale("0.1"), Ok(0.1));
        assert_eq!(scale("1"), Ok(1.0));
        for wrong in ["0", "-1", "1.01", "NaN", "inf", "half", ""] {
            assert!(scale(wrong).is_err(), "{wrong}");
        }
    }
}
