//! Symbolic factorization: where the factor has entries, and how its columns group into panels.
//!
//! The structure of a column of the factor is that of the matrix, joined with those of its children
//! in the elimination tree. Neighbouring columns of the same structure are a supernode, stored and
//! worked on as one dense piece; wide supernodes are cut into panels so that there is work for
//! several processes and a panel fits the cache. (Rothberg and Gupta, "Efficient Sparse Matrix
//! Factorization on High-Performance Workstations", ACM TOMS 1991.)

use super::plate::Lower;

/// A dense piece of the factor: neighbouring columns of one structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panel {
    /// The first column.
    pub first: usize,
    /// Number of columns.
    pub width: usize,
    /// Rows of the structure, rising; the panel's own columns come first.
    pub rows: Vec<u32>,
    /// Where its elements start in the factor: row by row, `width` to a row.
    pub start: usize,
    /// The panels that it must be subtracted from.
    pub updates: Vec<Update>,
}

/// What a finished panel does to a later one: its rows `from..` times its rows `from..to` (which are
/// columns of the other) are subtracted there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// The other panel.
    pub target: usize,
    /// First row, as an index into the rows of the source.
    pub from: usize,
    /// End of the rows that are columns of the target.
    pub to: usize,
}

/// The elimination tree: the parent of each column, itself for a root.
fn elimination_tree(lower: &Lower) -> Vec<usize> {
    let columns = lower.columns();
    let mut of_row = vec![Vec::new(); columns];
    for column in 0..columns {
        lower.column(column).skip(1).for_each(|(row, _)| of_row[row].push(column));
    }
    let mut parent: Vec<usize> = (0..columns).collect();
    let mut ancestor = parent.clone();
    for (row, left) in of_row.iter().enumerate() {
        for &column in left {
            let mut node = column;
            while ancestor[node] != row && ancestor[node] != node {
                node = std::mem::replace(&mut ancestor[node], row);
            }
            if ancestor[node] == node && node != row {
                ancestor[node] = row;
                parent[node] = row;
            }
        }
    }
    parent
}

/// Rows below the diagonal of each column of the factor.
fn structures(lower: &Lower, parent: &[usize]) -> Vec<Vec<u32>> {
    let mut structures: Vec<Vec<u32>> = vec![Vec::new(); parent.len()];
    let mut children = vec![Vec::new(); parent.len()];
    let mut seen_for = vec![usize::MAX; parent.len()];
    for column in 0..parent.len() {
        let own = lower.column(column).skip(1).map(|(row, _)| row as u32);
        let inherited = children[column].iter().flat_map(|&child: &usize| structures[child].iter().copied());
        let mut rows = Vec::new();
        for row in own.chain(inherited).filter(|&row| row as usize > column) {
            if std::mem::replace(&mut seen_for[row as usize], column) != column {
                rows.push(row);
            }
        }
        rows.sort_unstable();
        structures[column] = rows;
        if parent[column] != column {
            children[parent[column]].push(column);
        }
    }
    structures
}

/// Column ranges of panels: neighbours of one structure, at most `max_width` wide and evenly so.
fn ranges(structures: &[Vec<u32>], max_width: usize) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut first = 0;
    while first < structures.len() {
        let continues = |column: usize| {
            structures.get(column + 1).is_some_and(|next| structures[column].len() == next.len() + 1)
                && structures[column][0] as usize == column + 1
        };
        let width = 1 + (first..).take_while(|&column| continues(column)).count();
        let panels = width.div_ceil(max_width);
        ranges.extend((0..panels).map(|n| (first + width * n / panels, first + width * (n + 1) / panels)));
        first += width;
    }
    ranges
}

/// All panels of the factor of a matrix, in order of their columns.
pub fn panels(lower: &Lower, max_width: usize) -> Vec<Panel> {
    let structures = structures(lower, &elimination_tree(lower));
    let ranges = ranges(&structures, max_width);
    let mut panel_of = vec![0; lower.columns()];
    for (panel, &(first, end)) in ranges.iter().enumerate() {
        panel_of[first..end].fill(panel);
    }
    let mut start = 0;
    let panel = |&(first, end): &(usize, usize)| {
        let mut rows: Vec<u32> = (first as u32..end as u32).collect();
        rows.extend(&structures[end - 1]);
        let updates = updates(&rows, end - first, &panel_of);
        let panel = Panel { first, width: end - first, rows, start, updates };
        start += panel.rows.len() * panel.width;
        panel
    };
    ranges.iter().map(panel).collect()
}

fn updates(rows: &[u32], width: usize, panel_of: &[usize]) -> Vec<Update> {
    let mut updates = Vec::new();
    let mut from = width;
    while from < rows.len() {
        let target = panel_of[rows[from] as usize];
        let same = rows[from..].iter().take_while(|&&row| panel_of[row as usize] == target).count();
        updates.push(Update { target, from, to: from + same });
        from += same;
    }
    updates
}

impl Panel {
    /// Multiply-adds of all that is done with this panel.
    pub fn multiply_adds(&self) -> u64 {
        let inside = self.rows.len() * self.width * self.width / 2;
        let update =
            |update: &Update| (self.rows.len() - update.from) * (update.to - update.from) * self.width;
        (inside + self.updates.iter().map(update).sum::<usize>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::plate::plate;
    use super::*;

    /// The structure of the factor by eliminating columns of a dense pattern one by one.
    fn dense_structures(lower: &Lower) -> Vec<Vec<u32>> {
        let n = lower.columns();
        let mut filled = vec![vec![false; n]; n];
        for (column, filled) in filled.iter_mut().enumerate() {
            lower.column(column).for_each(|(row, _)| filled[row] = true);
        }
        for column in 0..n {
            let below: Vec<usize> = (column + 1..n).filter(|&row| filled[column][row]).collect();
            for (at, &to) in below.iter().enumerate() {
                below[at..].iter().for_each(|&row| filled[to][row] = true);
            }
        }
        let below = |column: usize| {
            (column + 1..n).filter(|&row| filled[column][row]).map(|row| row as u32).collect()
        };
        (0..n).map(below).collect()
    }

    #[test]
    fn the_structure_is_that_of_dense_elimination() {
        let lower = plate(6, 5);
        assert_eq!(structures(&lower, &elimination_tree(&lower)), dense_structures(&lower));
    }

    #[test]
    fn panels_cover_all_columns_and_are_no_wider_than_asked() {
        let panels = panels(&plate(12, 5), 6);
        let mut next = 0;
        for panel in &panels {
            assert_eq!(panel.first, next);
            assert!(panel.width <= 6);
            next += panel.width;
        }
        assert_eq!(next, 12 * 12 * 5);
    }

    #[test]
    fn a_target_has_all_rows_of_the_panels_that_update_it() {
        let panels = panels(&plate(10, 5), 8);
        for panel in &panels {
            for update in &panel.updates {
                let target = &panels[update.target];
                assert!(panel.rows[update.from..].iter().all(|row| target.rows.contains(row)));
            }
        }
    }

    #[test]
    fn the_papers_problem_is_a_hundred_million_multiply_adds() {
        let panels = panels(&plate(44, 1), 32);
        let sum: u64 = panels.iter().map(Panel::multiply_adds).sum();
        let elements: usize = panels.iter().map(|panel| panel.rows.len() * panel.width).sum();
        eprintln!("{} panels, {elements} elements, {sum} multiply-adds", panels.len());
        assert!((60_000_000..200_000_000).contains(&sum), "{sum}");
    }
}
