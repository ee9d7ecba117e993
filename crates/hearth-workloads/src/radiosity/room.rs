//! The scene: a room with furniture and two lamps, all of them boxes and rectangles along the axes.

use rand_core::Rng;
use rand_pcg::Pcg32;

/// Metres of the room.
const ROOM: [f64; 3] = [10.0, 8.0, 3.0];
/// Pieces of furniture along the room and across it; each stands somewhere in a square of the floor.
const PLACES: [usize; 2] = [5, 4];
/// Sizes of a piece: from, and how much more at most.
const LEAST_SIZE: [f64; 3] = [0.6, 0.6, 0.5];
const MORE_SIZE: [f64; 3] = [0.8, 0.8, 1.2];
/// The lamps: centres of their lower sides, and half of their sizes.
const LAMPS: [[f64; 3]; 2] = [[3.0, 4.0, 2.9], [7.0, 4.0, 2.9]];
const LAMP_HALVES: [f64; 2] = [0.6, 0.3];
/// What a lamp gives off, and the share of light that lamps, walls and furniture throw back.
const LAMP: f64 = 20.0;
const LAMP_THROWS: f64 = 0.1;
const WALL_THROWS: f64 = 0.6;
const FURNITURE_THROWS: f64 = 0.4;

/// A rectangle: its centre, half of each edge, and the direction that it faces.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shape {
    /// The centre.
    pub centre: [f64; 3],
    /// From the centre to the middle of one edge, and of the next.
    pub halves: [[f64; 3]; 2],
    /// The side that it faces, of length 1.
    pub normal: [f64; 3],
    /// Its area.
    pub area: f64,
}

/// A rectangle with its colour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surface {
    /// The rectangle.
    pub shape: Shape,
    /// Light that it gives off.
    pub emission: f64,
    /// The share of light that it throws back.
    pub reflectance: f64,
}

/// A piece of furniture: least and greatest coordinates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Block {
    /// Least and greatest coordinate along each axis.
    pub sides: [[f64; 2]; 3],
}

/// A scene.
pub struct Scene {
    /// All that light falls on.
    pub surfaces: Vec<Surface>,
    /// What stands in the way.
    pub blocks: Vec<Block>,
}

pub fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// From `a` to `b`.
pub fn between(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [b[0] - a[0], b[1] - a[1], b[2] - a[2]]
}

impl Shape {
    /// The side of a box across `axis`, the one at its greatest coordinate or at its least, that faces
    /// out of it or into it.
    fn of_box(sides: &[[f64; 2]; 3], axis: usize, greatest: bool, out: bool) -> Self {
        let mut centre = sides.map(|[from, to]| (from + to) / 2.0);
        centre[axis] = sides[axis][usize::from(greatest)];
        let half = |along: usize| {
            let mut half = [0.0; 3];
            half[along] = (sides[along][1] - sides[along][0]) / 2.0;
            half
        };
        let (first, second) = ((axis + 1) % 3, (axis + 2) % 3);
        let mut normal = [0.0; 3];
        normal[axis] = if greatest == out { 1.0 } else { -1.0 };
        let halves = [half(first), half(second)];
        Self { centre, halves, normal, area: 4.0 * halves[0][first] * halves[1][second] }
    }

    /// A point of the rectangle, -1 to 1 along each edge from its centre.
    pub fn point(&self, at: [f64; 2]) -> [f64; 3] {
        let [u, v] = self.halves;
        [0, 1, 2].map(|axis| self.centre[axis] + at[0] * u[axis] + at[1] * v[axis])
    }

    /// One of its four quarters.
    pub fn quarter(&self, number: usize) -> Self {
        let side = |bit: usize| if number >> bit & 1 == 0 { -0.5 } else { 0.5 };
        Self {
            centre: self.point([side(0), side(1)]),
            halves: self.halves.map(|half| half.map(|along| along / 2.0)),
            area: self.area / 4.0,
            ..*self
        }
    }

    /// How many of another one's corners it faces.
    pub fn corners_before(&self, other: &Shape) -> usize {
        let corners = [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]];
        let before = |at: [f64; 2]| dot(self.normal, between(self.centre, other.point(at))) > 1e-9;
        corners.into_iter().filter(|&at| before(at)).count()
    }
}

impl Scene {
    /// The room, its furniture placed at random.
    pub fn new(random: &mut Pcg32) -> Self {
        let mut unit = || f64::from(random.next_u32() >> 8) / f64::from(1 << 24);
        let room = ROOM.map(|length| [0.0, length]);
        let mut surfaces = Vec::new();
        let mut add = |shape, emission, reflectance| surfaces.push(Surface { shape, emission, reflectance });
        for axis in 0..3 {
            for greatest in [false, true] {
                add(Shape::of_box(&room, axis, greatest, false), 0.0, WALL_THROWS);
            }
        }
        for [x, y, z] in LAMPS {
            let [half_x, half_y] = LAMP_HALVES;
            let lamp = [[x - half_x, x + half_x], [y - half_y, y + half_y], [z, ROOM[2]]];
            add(Shape::of_box(&lamp, 2, false, true), LAMP, LAMP_THROWS);
        }
        let mut blocks = Vec::new();
        for (x, y) in (0..PLACES[0]).flat_map(|x| (0..PLACES[1]).map(move |y| (x, y))) {
            let mut sides = [[0.0; 2]; 3];
            for (axis, place) in [x, y].into_iter().enumerate() {
                let room = ROOM[axis] / PLACES[axis] as f64;
                let size = LEAST_SIZE[axis] + MORE_SIZE[axis] * unit();
                let start = room * place as f64 + (room - size) * unit();
                sides[axis] = [start, start + size];
            }
            sides[2] = [0.0, LEAST_SIZE[2] + MORE_SIZE[2] * unit()];
            for (axis, greatest) in [(0, false), (0, true), (1, false), (1, true), (2, true)] {
                add(Shape::of_box(&sides, axis, greatest, true), 0.0, FURNITURE_THROWS);
            }
            blocks.push(Block { sides });
        }
        Self { surfaces, blocks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    #[test]
    fn quarters_make_up_the_whole() {
        let scene = Scene::new(&mut Pcg32::seed_from_u64(1));
        for surface in scene.surfaces {
            let quarters = [0, 1, 2, 3].map(|number| surface.shape.quarter(number));
            let area: f64 = quarters.iter().map(|quarter| quarter.area).sum();
            assert!((area - surface.shape.area).abs() < 1e-9);
            for axis in 0..3 {
                let mean: f64 = quarters.iter().map(|quarter| quarter.centre[axis]).sum::<f64>() / 4.0;
                assert!((mean - surface.shape.centre[axis]).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn opposite_walls_face_each_other_and_no_side_of_a_block_faces_the_next() {
        let scene = Scene::new(&mut Pcg32::seed_from_u64(1));
        let [left, right] = [scene.surfaces[0].shape, scene.surfaces[1].shape];
        assert_eq!((left.corners_before(&right), right.corners_before(&left)), (4, 4));
        let [west, east] = [scene.surfaces[8].shape, scene.surfaces[9].shape];
        assert_eq!(west.corners_before(&east), 0);
    }
}
