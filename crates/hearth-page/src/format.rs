//! Numbers as text, the same in tables, sentences and pages.

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
}
