//! What all of Hearth's HTML pages have in common: the frame, axes around drawings, numbers as text.

pub mod format;
mod page;
pub mod plot;

pub use page::Page;
