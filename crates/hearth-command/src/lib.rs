//! What Hearth's commands have in common: how they end, what they print and write, names of policies,
//! completions and manual pages.

pub mod complete;
pub mod failure;
pub mod generate;
pub mod interrupt;
pub mod names;
pub mod output;
pub mod program;
mod style;
pub mod table;

pub use style::STYLES;
