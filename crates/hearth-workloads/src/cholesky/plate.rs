//! The matrix: a square shell of finite elements, each node coupled with its eight neighbours.

use super::ordering::nested_dissection;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// Unknowns of a node of a shell: three displacements and two rotations.
const UNKNOWNS: usize = 5;

/// The lower triangle of a symmetric sparse matrix, by columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Lower {
    /// Where each column starts in `rows` and `values`; one more at the end.
    pub starts: Vec<usize>,
    /// Rows of the entries of each column, rising; the diagonal comes first.
    pub rows: Vec<u32>,
    /// The entries.
    pub values: Vec<f64>,
}

impl Lower {
    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.starts.len() - 1
    }

    /// Entries of a column: row and value.
    pub fn column(&self, column: usize) -> impl Iterator<Item = (usize, f64)> {
        (self.starts[column]..self.starts[column + 1]).map(|at| (self.rows[at] as usize, self.values[at]))
    }

    /// The whole symmetric matrix times a vector.
    pub fn times(&self, vector: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; vector.len()];
        for column in 0..self.columns() {
            for (row, value) in self.column(column) {
                product[row] += value * vector[column];
                if row != column {
                    product[column] += value * vector[row];
                }
            }
        }
        product
    }
}

/// Nodes next to a node, diagonally too.
fn neighbours(node: usize, side: usize) -> impl Iterator<Item = usize> {
    let (x, y) = (node % side, node / side);
    let around = move |at: usize| at.saturating_sub(1)..(at + 2).min(side);
    around(y).flat_map(move |row| around(x).map(move |column| row * side + column))
}

/// The stiffness matrix of a plate of `side` x `side` nodes, eliminated in nested-dissection order.
pub fn plate(side: usize, seed: u64) -> Lower {
    stiffness(&nested_dissection(side), |node| neighbours(node, side), UNKNOWNS, seed)
}

/// The stiffness matrix of nodes that are eliminated in `order`, each with so many unknowns and
/// coupled with its neighbours and itself. Entries are random; the diagonal outweighs its row, so that
/// the matrix is positive definite.
pub fn stiffness<N: Iterator<Item = usize>>(
    order: &[usize],
    neighbours: impl Fn(usize) -> N,
    unknowns: usize,
    seed: u64,
) -> Lower {
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &node)| place[node] = at);
    let mut random = Pcg32::seed_from_u64(seed);
    let mut columns = vec![Vec::new(); order.len() * unknowns];
    let mut weight = vec![1.0; columns.len()];
    for (at, &node) in order.iter().enumerate() {
        let mut coupled: Vec<usize> =
            neighbours(node).map(|node| place[node]).filter(|&other| other >= at).collect();
        coupled.sort_unstable();
        for column in at * unknowns..(at + 1) * unknowns {
            let rows = coupled.iter().flat_map(|&other| other * unknowns..(other + 1) * unknowns);
            for row in rows.filter(|&row| row > column) {
                let value = -f64::from(random.next_u32() % 1000 + 1) / 1000.0;
                columns[column].push((row as u32, value));
                weight[column] -= value;
                weight[row] -= value;
            }
        }
    }
    let mut lower = Lower { starts: vec![0], rows: Vec::new(), values: Vec::new() };
    for (column, entries) in columns.into_iter().enumerate() {
        lower.rows.push(column as u32);
        lower.values.push(weight[column]);
        for (row, value) in entries {
            lower.rows.push(row);
            lower.values.push(value);
        }
        lower.starts.push(lower.rows.len());
    }
    lower
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_plate_has_the_papers_size() {
        let lower = plate(44, 1);
        assert_eq!(lower.columns(), 9_680);
        assert_eq!(lower.rows.len(), 216_090);
    }

    #[test]
    fn columns_start_at_the_diagonal_and_rise() {
        let lower = plate(7, 3);
        for column in 0..lower.columns() {
            let rows: Vec<usize> = lower.column(column).map(|(row, _)| row).collect();
            assert_eq!(rows[0], column);
            assert!(rows.is_sorted_by(|a, b| a < b));
        }
    }

    #[test]
    fn the_diagonal_outweighs_its_row() {
        let lower = plate(6, 9);
        let ones = vec![1.0; lower.columns()];
        assert!(lower.times(&ones).iter().all(|&sum| sum > 0.5));
    }
}
