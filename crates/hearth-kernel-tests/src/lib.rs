//! What tests in real kernels have in common: the program under test, boots that tests share, as many guests at
//! a time as there are CPUs, and an account of what ran.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod binary;
mod once;
mod outcome;
mod read;
mod shared;
mod turn;

pub use binary::hearth;
pub use once::{Once, once};
pub use outcome::{ran, skipped};
pub use read::{assert_untroubled, first, has_line, line, number, numbers, numbers_in, records, text};
pub use shared::{Shared, guest};
pub use turn::{Turn, turn};
