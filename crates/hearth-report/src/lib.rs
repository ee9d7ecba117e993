//! What all of Hearth's reports have in common: figures with their spread, numbers as text, pages with
//! charts, and traces for Perfetto.

pub mod bars;
mod figure;
pub mod format;
mod page;
pub mod perfetto;
pub mod plot;

pub use figure::Figure;
pub use page::Page;
