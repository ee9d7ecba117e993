//! Numbers as text, the same in tables, sentences and pages.

use super::Figure;

pub use hearth_page::format::{count, significant};

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
