//! Cholesky factorization of a sparse matrix: `A = L * L^T`, parallel by panels.
//!
//! The matrix is a square shell of finite elements ([`plate`]): 9,680 rows and 216,090 entries in its
//! lower triangle at scale 1, where the paper has "10K rows and 200K nonzeros". It is ordered by nested
//! dissection ([`ordering`]), its factor's structure is found and cut into panels ([`symbolic`]), and four
//! processes take ready panels off a queue, finish them, and subtract their products from the panels that
//! they update (`numeric.rs`, [`factor`]), as in the SPLASH program.

pub mod factor;
mod numeric;
pub mod ordering;
pub mod plate;
pub mod queue;
pub mod symbolic;

use crate::{Built, Description, Kind};
use hearth_sim::memory::Memory;
use hearth_sim::program::Application;
use numeric::Factorization;

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "cholesky",
    description: "sparse Cholesky factorization, 9,680 rows, 216,000 entries, 4 processes",
    kind: Kind::Real,
    source: "Torrellas, Tucker, Gupta 1995, table I; Rothberg and Gupta, SPLASH",
};

/// Nodes along a side of the plate at scale 1.
const SIDE: usize = 44;
/// The smallest plate that keeps four processes busy.
const MIN_SIDE: usize = 8;
const PROCESSES: usize = 4;

/// Nodes along a side at a scale: the work grows with the third power of the side.
fn side(scale: f64) -> usize {
    let work = scale * (SIDE * SIDE * SIDE) as f64;
    (MIN_SIDE..=SIDE).take_while(|side| (side * side * side) as f64 <= work).last().unwrap_or(MIN_SIDE)
}

/// Sets the program up; see [`crate::build`]. A smaller scale is a smaller plate, and so a smaller
/// factor: this is the one program whose working set shrinks.
pub fn build(memory: &Memory, scale: f64, seed: u64) -> Built {
    let factorization = Factorization::new(memory, plate::plate(side(scale), seed), PROCESSES);
    let mut application = Application::new(DESCRIPTION.name);
    for process in 0..PROCESSES {
        let factorization = factorization.clone();
        application.task(&format!("cholesky-{process}"), move |cpu| factorization.work(cpu, process, seed));
    }
    Built::new(application, move || factorization.check())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_the_share_of_the_work() {
        assert_eq!(side(1.0), 44);
        assert_eq!(side(0.125), 22);
        assert_eq!(side(1e-9), MIN_SIDE);
    }
}
