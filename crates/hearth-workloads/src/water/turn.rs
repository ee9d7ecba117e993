//! Random directions, for the molecules' places at the start. No trigonometry, so the same everywhere.

use rand_core::Rng;
use rand_pcg::Pcg32;

/// Numbers from -1 to 1.
pub fn draw(random: &mut Pcg32) -> f64 {
    f64::from(random.next_u32()) / f64::from(1u32 << 31) - 1.0
}

/// A rotation at random: two unit vectors drawn from the ball, made normal to each other, and their
/// product.
pub fn rotation(random: &mut Pcg32) -> [[f64; 3]; 3] {
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    loop {
        let [a, b] = [(); 2].map(|()| [(); 3].map(|()| draw(random)));
        let lengths = [dot(a, a), dot(b, b)];
        if lengths.iter().any(|length| !(0.01..1.0).contains(length)) {
            continue;
        }
        let x = a.map(|at| at / lengths[0].sqrt());
        let along = dot(x, b);
        let y = [0, 1, 2].map(|axis| b[axis] - along * x[axis]);
        let length = dot(y, y).sqrt();
        if length > 0.1 {
            let y = y.map(|at| at / length);
            let z = [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]];
            return [x, y, z];
        }
    }
}
