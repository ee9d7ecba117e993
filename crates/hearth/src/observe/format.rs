//! Numbers as text, the same in tables and on the page.

/// Three significant digits, without an exponent.
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
