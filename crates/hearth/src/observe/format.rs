//! Numbers as text, the same in tables and on the page.

use hearth_observe::estimate::Estimate;
use hearth_observe::report::Ceiling;

pub use hearth_report::format::{count, significant};

/// A share in percent with its interval; below 0 is 0.
pub fn range(share: &Estimate) -> String {
    let [value, low, high] = [share.value, share.low, share.high].map(|share| share.max(0.0));
    format!("{value:.1} ({low:.1} to {high:.1})")
}

/// A ceiling in percent; without a steady state its upper end alone.
pub fn ceiling(ceiling: Option<&Ceiling>) -> String {
    match ceiling {
        Some(&Ceiling { percent: Some(value), low, high }) => range(&Estimate { value, low, high }),
        Some(Ceiling { high, .. }) => format!("up to {high:.1}"),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_below_nothing_is_nothing() {
        assert_eq!(range(&Estimate { value: -0.2, low: -1.0, high: 0.6 }), "0.0 (0.0 to 0.6)");
        assert_eq!(ceiling(Some(&Ceiling { percent: None, low: 0.0, high: 3.21 })), "up to 3.2");
        assert_eq!(ceiling(None), "-");
    }
}
