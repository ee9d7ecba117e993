//! Comparisons, and one self-contained HTML page that shows them.

mod comparison;
pub mod format;

pub use comparison::{Comparison, Figure, PolicyRuns, Summary};
/// A page that shows a comparison.
pub fn compare_page(comparison: &Comparison) -> String { comparison.sentence() }
