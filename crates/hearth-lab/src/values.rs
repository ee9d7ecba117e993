//! Values of options, checked.

use std::fmt::{self, Display, Formatter};
use std::ops::RangeInclusive;
use std::str::FromStr;

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

/// Which seeds: `3` is 1 to 3, `4-6` is these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(RangeInclusive<u64>);

const MOST_SEEDS: usize = 1000;
const LAST_SEED: usize = 1_000_000;

impl Seeds {
    /// Each of them.
    pub fn all(&self) -> Vec<u64> {
        self.0.clone().collect()
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((first, last)) = text.split_once('-') else {
            return Ok(Self(1..=count(text, 1..=MOST_SEEDS)? as u64));
        };
        match (count(first, 1..=LAST_SEED), count(last, 1..=LAST_SEED)) {
            (Ok(first), Ok(last)) if first <= last && last - first < MOST_SEEDS => {
                Ok(Self(first as u64..=last as u64))
            }
            _ => Err(format!(
                "give how many, up to {MOST_SEEDS}, or the first and the last, up to {LAST_SEED}: 4-6"
            )),
        }
    }
}

impl Display for Seeds {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.0.start() {
            1 => write!(out, "{}", self.0.end()),
            first => write!(out, "{first}-{}", self.0.end()),
        }
    }
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
    fn seeds_are_so_many_or_from_one_to_another() {
        let seeds = |text: &str| text.parse::<Seeds>();
        assert_eq!(seeds("3").unwrap().all(), [1, 2, 3]);
        assert_eq!(seeds("4-6").unwrap().all(), [4, 5, 6]);
        for text in ["3", "1000", "4-6", "7-7", "1000000-1000000"] {
            assert_eq!(seeds(text).unwrap().to_string(), text);
        }
        for wrong in ["0", "1001", "-3", "3-", "0-4", "6-4", "1-1001", "1-1000001", "1.5", "1-2-3", ""] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_scale_is_above_0_and_up_to_1() {
        assert_eq!(scale("0.1"), Ok(0.1));
        assert_eq!(scale("1"), Ok(1.0));
        for wrong in ["0", "-1", "1.01", "NaN", "inf", "half", ""] {
            assert!(scale(wrong).is_err(), "{wrong}");
        }
    }
}
