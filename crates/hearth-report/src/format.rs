//! Numbers as text, the same in tables, sentences and pages.

use crate::Figure;

/// Three significant digits, without an exponent: `4.21`, `42.1`, `421`, `0.0421`.
pub fn significant(value: f64) -> String {
    let digits = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.1.. => 3,
        0.0 => 0,
        _ => 4,
    };
    format!("{value:.digits$}")
}

/// A whole number with its thousands apart: `12 345`.
pub fn count(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// As [`count`], for values that may be below 0.
pub fn signed_count(value: f64) -> String {
    let sign = if value.round() < 0.0 { "-" } else { "" };
    format!("{sign}{}", count(value.abs()))
}

/// With one digit behind the point: `42.1`.
pub fn tenths(value: f64) -> String {
    format!("{value:.1}")
}

/// A count in millions.
pub fn millions(count: f64) -> String {
    significant(count / 1e6)
}

/// A task with its application, unless its own name says that already.
pub fn task(application: &str, task: &str) -> String {
    if task.starts_with(application) { task.to_owned() } else { format!("{application}: {task}") }
}

/// `seed 1`, `seeds 1 to 3`.
pub fn seeds(seeds: &[u64]) -> String {
    match seeds {
        [first, .., last] => format!("seeds {first} to {last}"),
        seeds => format!("seed {}", seeds.first().copied().unwrap_or_default()),
    }
}

/// A change in percent with its sign: `-6.1 %`.
pub fn change(percent: f64) -> String {
    if percent.abs() < 0.05 { "0.0 %".to_owned() } else { format!("{percent:+.1} %") }
}

/// A figure, with its spread where it has one: `4.21 (4.18 to 4.25)`.
pub fn spread(figure: &Figure, show: impl Fn(f64) -> String) -> String {
    let (mean, low, high) = (show(figure.mean), show(figure.low), show(figure.high));
    if low == high { mean } else { format!("{mean} ({low} to {high})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_significant_digits() {
        let shown: Vec<String> =
            [0.0, 0.042_13, 0.5, 4.2129, 42.129, 421.29, 4212.9].into_iter().map(significant).collect();
        assert_eq!(shown, ["0", "0.0421", "0.500", "4.21", "42.1", "421", "4213"]);
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(count(999.0), "999");
        assert_eq!(count(1_234_567.0), "1 234 567");
    }

    #[test]
    fn a_task_is_named_with_its_application() {
        assert_eq!(task("matrix", "matrix-0"), "matrix-0");
        assert_eq!(task("matrix#2", "matrix-0"), "matrix#2: matrix-0");
    }

    #[test]
    fn a_figure_of_one_value_has_no_spread() {
        assert_eq!(spread(&Figure::of([2.0]), significant), "2.00");
        assert_eq!(spread(&Figure::of([2.0, 2.5, 3.0]), significant), "2.50 (2.00 to 3.00)");
    }
}
