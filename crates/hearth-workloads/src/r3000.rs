//! What operations cost on the MIPS R3000 and its floating-point unit, the R3010, in cycles beside the
//! first cycle of each load and store, which the simulated cache charges.

/// A double-precision addition, subtraction or comparison.
pub const ADD: u64 = 2;
/// A double-precision multiplication.
pub const MULTIPLY: u64 = 5;
/// A double-precision division.
pub const DIVIDE: u64 = 19;
/// A square root: the R3010 has none, so a library iterates.
pub const SQUARE_ROOT: u64 = 60;
/// A double is loaded and stored as two words.
pub const SECOND_WORD: u64 = 1;
/// The end of an inner loop: an increment or two, a comparison, a branch.
pub const LOOP: u64 = 4;
