//! What all of Hearth's reports have in common: figures with their spread, numbers as text, pages with
//! charts, and traces for Perfetto.

pub mod bars;
mod figure;
pub mod format;
pub mod measure;
mod page;
pub mod pairs;
pub mod perfetto;
pub mod plot;

pub use figure::Figure;
pub use measure::Measure;
pub use page::{Page, Source};
