//! Nested dissection of a square plate: the order in which its nodes are eliminated.
//!
//! A line of nodes separates a rectangle in two; both halves are eliminated before the line, so
//! neither fills in the other. The halves are ordered in the same way. (George, "Nested Dissection of
//! a Regular Finite Element Mesh", SIAM J. Numer. Anal. 1973.)

/// Rectangles of at most this many nodes are not cut further.
const LEAF_NODES: usize = 4;

/// A rectangle of nodes: columns `x.0..x.1`, rows `y.0..y.1`.
#[derive(Clone, Copy)]
struct Rectangle {
    x: (usize, usize),
    y: (usize, usize),
}

/// The nodes of a plate of `side` x `side`, by number `y * side + x`, in order of elimination.
pub fn nested_dissection(side: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(side * side);
    dissect(Rectangle { x: (0, side), y: (0, side) }, side, &mut order);
    order
}

fn dissect(rectangle: Rectangle, side: usize, order: &mut Vec<usize>) {
    let Rectangle { x, y } = rectangle;
    let (width, height) = (x.1 - x.0, y.1 - y.0);
    if width * height <= LEAF_NODES || width.max(height) < 3 {
        order.extend((y.0..y.1).flat_map(|row| (x.0..x.1).map(move |column| row * side + column)));
    } else if width >= height {
        let cut = x.0 + width / 2;
        dissect(Rectangle { x: (x.0, cut), y }, side, order);
        dissect(Rectangle { x: (cut + 1, x.1), y }, side, order);
        order.extend((y.0..y.1).map(|row| row * side + cut));
    } else {
        let cut = y.0 + height / 2;
        dissect(Rectangle { x, y: (y.0, cut) }, side, order);
        dissect(Rectangle { x, y: (cut + 1, y.1) }, side, order);
        order.extend((x.0..x.1).map(|column| cut * side + column));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_comes_exactly_once() {
        for side in [1, 2, 3, 7, 50] {
            let mut order = nested_dissection(side);
            order.sort_unstable();
            assert!(order.into_iter().eq(0..side * side), "{side}");
        }
    }

    #[test]
    fn the_halves_come_before_the_line_that_separates_them() {
        let order = nested_dissection(9);
        let last: Vec<usize> = order[order.len() - 9..].iter().map(|node| node % 9).collect();
        assert_eq!(last, [4; 9]);
    }
}
