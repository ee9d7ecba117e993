//! What a command measured itself: lines `NAME NUMBER` in the file that `HEARTH_MEASURES` names.

use std::collections::BTreeMap;

/// The measures by name; one that was told several times, by copies for example, is the mean.
pub(crate) fn read(lines: &[String]) -> Result<BTreeMap<String, f64>, String> {
    let mut told: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
        let (name, value) = measure(line).ok_or_else(|| {
            format!("{line:?} is not of the form NAME NUMBER, with letters, digits and _ in the name, and a number from 0 on")
        })?;
        told.entry(name.to_owned()).or_default().push(value);
    }
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    Ok(told.into_iter().map(|(name, values)| (name, mean(values))).collect())
}

fn measure(line: &str) -> Option<(&str, f64)> {
    let (name, value) = line.split_once(' ')?;
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let value: f64 = value.trim().parse().ok()?;
    (is_name && value.is_finite() && value >= 0.0).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Result<BTreeMap<String, f64>, String> {
        read(&lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_told_several_times_is_the_mean() {
        let measures = of(&["p99_us 12", "", "p99_us  14.0 ", "requests_per_s 1e3"]).unwrap();
        assert_eq!(measures, [("p99_us".to_owned(), 13.0), ("requests_per_s".to_owned(), 1000.0)].into());
        assert_eq!(of(&[]).unwrap(), BTreeMap::new());
    }

    #[test]
    fn what_is_no_measure_is_named() {
        for line in ["p99", "p-9 1", "9p 1", "p x", "p -1", "p nan", "p inf", "p 1 2", " "] {
            match of(&[line]) {
                Err(what) => assert!(what.contains(line), "{what}"),
                Ok(measures) => assert!(line.trim().is_empty() && measures.is_empty(), "{line:?}"),
            }
        }
    }
}
