//! The matrix: a solid brick of finite elements, each node coupled with the 26 around it, and its
//! nested dissection: a plane of nodes separates a brick in two, which are ordered before the plane,
//! in the same way.

use crate::cholesky::plate::{Lower, stiffness};

/// Unknowns of a node: its displacements.
const UNKNOWNS: usize = 3;
/// Bricks of at most this many nodes are not cut further.
const LEAF_NODES: usize = 8;

/// A brick of nodes, from `start` to `end` along each axis.
#[derive(Clone, Copy)]
struct Brick {
    start: [usize; 3],
    end: [usize; 3],
}

/// The stiffness matrix of a brick of so many nodes along each axis, in nested-dissection order.
pub fn brick(sides: [usize; 3], seed: u64) -> Lower {
    let mut order = Vec::new();
    dissect(Brick { start: [0; 3], end: sides }, sides, &mut order);
    stiffness(&order, |node| neighbours(node, sides), UNKNOWNS, seed)
}

fn node(at: [usize; 3], sides: [usize; 3]) -> usize {
    (at[2] * sides[1] + at[1]) * sides[0] + at[0]
}

impl Brick {
    fn nodes(self, sides: [usize; 3]) -> impl Iterator<Item = usize> {
        let [x, y, z] = [0, 1, 2].map(|axis| self.start[axis]..self.end[axis]);
        z.flat_map(move |z| {
            let x = x.clone();
            y.clone().flat_map(move |y| x.clone().map(move |x| node([x, y, z], sides)))
        })
    }
}

/// A node and all that are next to it, diagonally too.
fn neighbours(number: usize, sides: [usize; 3]) -> impl Iterator<Item = usize> {
    let at = [number % sides[0], number / sides[0] % sides[1], number / sides[0] / sides[1]];
    let start = at.map(|at| at.saturating_sub(1));
    let end = [0, 1, 2].map(|axis| (at[axis] + 2).min(sides[axis]));
    Brick { start, end }.nodes(sides)
}

fn dissect(brick: Brick, sides: [usize; 3], order: &mut Vec<usize>) {
    let lengths = [0, 1, 2].map(|axis| brick.end[axis] - brick.start[axis]);
    let longest = (0..3).max_by_key(|&axis| lengths[axis]).unwrap_or(0);
    if lengths.iter().product::<usize>() <= LEAF_NODES || lengths[longest] < 3 {
        order.extend(brick.nodes(sides));
        return;
    }
    let cut = brick.start[longest] + lengths[longest] / 2;
    let (mut before, mut after, mut plane) = (brick, brick, brick);
    before.end[longest] = cut;
    after.start[longest] = cut + 1;
    (plane.start[longest], plane.end[longest]) = (cut, cut + 1);
    dissect(before, sides, order);
    dissect(after, sides, order);
    order.extend(plane.nodes(sides));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cholesky::symbolic::panels;

    #[test]
    fn every_node_comes_exactly_once() {
        for sides in [[1, 1, 1], [3, 2, 5], [7, 7, 7]] {
            let mut order = Vec::new();
            dissect(Brick { start: [0; 3], end: sides }, sides, &mut order);
            order.sort_unstable();
            assert!(order.into_iter().eq(0..sides.iter().product()), "{sides:?}");
        }
    }

    #[test]
    fn a_node_in_the_middle_has_26_others_around_it() {
        assert_eq!(neighbours(node([2, 2, 2], [5, 5, 5]), [5, 5, 5]).count(), 27);
        assert_eq!(neighbours(0, [5, 5, 5]).count(), 8);
    }

    #[test]
    fn a_solid_fills_in_far_more_than_a_plate() {
        let lower = brick([11, 11, 11], 1);
        assert_eq!(lower.columns(), 3_993);
        let elements: usize = panels(&lower, 16).iter().map(|panel| panel.rows.len() * panel.width).sum();
        assert!((700_000..1_100_000).contains(&elements), "{elements}");
    }
}
