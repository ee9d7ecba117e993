//! Ousterhout's matrix: rows are slots of time, columns CPUs.

/// Which gang has which column in which row. Rows are never empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Matrix {
    /// Columns at which a cache domain begins; the first one, too.
    borders: Vec<usize>,
    columns: usize,
    /// Whether a column is taken.
    rows: Vec<Vec<bool>>,
}

/// A stretch of columns in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub row: usize,
    pub first: usize,
    pub width: usize,
}

impl Matrix {
    /// A matrix without rows. `domains`: the cache domain of each column.
    pub fn new(domains: &[usize]) -> Self {
        let begins = |column: &usize| *column == 0 || domains[column - 1] != domains[*column];
        let borders = (0..domains.len()).filter(begins).collect();
        Self { borders, columns: domains.len(), rows: Vec::new() }
    }

    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Gives a gang a place: one row, or if it is wider than the machine as few as it takes, filled evenly.
    pub fn place(&mut self, width: usize) -> Vec<Stretch> {
        let stretches = width.div_ceil(self.columns.max(1));
        (0..stretches)
            .map(|i| self.place_one((width * (i + 1)) / stretches - (width * i) / stretches))
            .collect()
    }

    fn place_one(&mut self, width: usize) -> Stretch {
        let found = (0..self.rows.len()).find_map(|row| Some((row, self.best_in(row, width)?)));
        let (row, first) = found.unwrap_or_else(|| {
            self.rows.push(vec![false; self.columns]);
            (self.rows.len() - 1, 0)
        });
        self.rows[row][first..first + width].fill(true);
        Stretch { row, first, width }
    }

    /// Where in a row a gang fits: best where fewest cache domains are cut, then where the room is least.
    fn best_in(&self, row: usize, width: usize) -> Option<usize> {
        let free = |column: usize| column < self.columns && !self.rows[row][column];
        let room_around = |first: usize| {
            let before = (0..first).rev().take_while(|column| free(*column)).count();
            before + (first..).take_while(|column| free(*column)).count()
        };
        let fits = |first: &usize| (*first..first + width).all(free);
        (0..self.columns)
            .filter(fits)
            .min_by_key(|&first| (self.cuts(first, width), room_around(first), first))
    }

    /// Borders of domains within a stretch, and whether its begin is none.
    fn cuts(&self, first: usize, width: usize) -> usize {
        let within =
            self.borders.iter().filter(|border| (first + 1..first + width).contains(*border)).count();
        within + usize::from(!self.borders.contains(&first))
    }

    /// Takes a gang out.
    pub fn remove(&mut self, stretches: &[Stretch]) {
        for Stretch { row, first, width } in stretches {
            self.rows[*row][*first..first + width].fill(false);
        }
    }

    /// Whether nobody is in a row.
    pub fn is_empty(&self, row: usize) -> bool {
        self.rows[row].iter().all(|taken| !taken)
    }

    /// Drops a row that is empty: those after it move up by one.
    pub fn drop_row(&mut self, row: usize) {
        self.rows.remove(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two domains of four columns.
    fn matrix() -> Matrix {
        Matrix::new(&[0, 0, 0, 0, 1, 1, 1, 1])
    }

    fn at(row: usize, first: usize, width: usize) -> Vec<Stretch> {
        vec![Stretch { row, first, width }]
    }

    #[test]
    fn a_gang_fills_whole_domains_where_it_fits() {
        let mut matrix = matrix();
        assert_eq!(matrix.place(3), at(0, 0, 3));
        assert_eq!(matrix.place(4), at(0, 4, 4));
        assert_eq!(matrix.place(1), at(0, 3, 1));
        assert_eq!(matrix.place(8), at(1, 0, 8));
    }

    #[test]
    fn a_small_gang_goes_where_the_room_is_least() {
        let mut matrix = matrix();
        let first = matrix.place(2);
        assert_eq!(matrix.place(6), at(0, 2, 6));
        assert_eq!(matrix.place(3), at(1, 0, 3));
        matrix.remove(&first);
        assert_eq!(matrix.place(2), at(0, 0, 2));
    }

    #[test]
    fn a_gang_wider_than_the_machine_has_as_few_rows_as_it_takes_and_fills_them_evenly() {
        let widths = |width| matrix().place(width).iter().map(|stretch| stretch.width).collect::<Vec<_>>();
        assert_eq!(widths(8), [8]);
        assert_eq!(widths(9), [4, 5]);
        assert_eq!(widths(20), [6, 7, 7]);
        assert_eq!(widths(0), [0; 0]);
    }

    proptest! {
        #[test]
        fn no_two_gangs_share_a_place(
            widths in prop::collection::vec((1..30usize, any::<bool>()), 1..40),
            domains in prop::collection::vec(1..6usize, 1..6),
        ) {
            let columns: Vec<usize> =
                domains.iter().enumerate().flat_map(|(domain, cpus)| vec![domain; *cpus]).collect();
            let mut matrix = Matrix::new(&columns);
            let mut placed: Vec<Vec<Stretch>> = Vec::new();
            for (width, goes) in widths {
                let stretches = matrix.place(width);
                prop_assert_eq!(stretches.iter().map(|stretch| stretch.width).sum::<usize>(), width);
                prop_assert_eq!(stretches.len(), width.div_ceil(columns.len()));
                placed.push(stretches);
                if goes {
                    matrix.remove(&placed.remove(placed.len() / 2));
                }
            }
            let mut taken = vec![vec![false; columns.len()]; matrix.rows()];
            for Stretch { row, first, width } in placed.into_iter().flatten() {
                for place in &mut taken[row][first..first + width] {
                    prop_assert!(!*place);
                    *place = true;
                }
            }
            prop_assert_eq!(taken, matrix.rows);
        }
    }
}
