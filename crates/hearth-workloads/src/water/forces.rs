//! The forces within and between molecules: a flexible three-site model of water.
//!
//! Lengths in ångström, times in femtoseconds, masses in atomic units. Bonds and the distance of the
//! two hydrogens are springs; each atom has a charge; oxygens repel and attract each other
//! (Lennard-Jones). Parameters are those of the simple point charge model (Berendsen and others,
//! "Interaction Models for Water in Relation to Protein Hydration", 1981).

/// Positions or forces of a molecule's three atoms: oxygen, hydrogen, hydrogen.
pub type Atoms = [[f64; 3]; 3];

/// A kilocalorie per mole in these units.
const KILOCALORIE: f64 = 4.184e-4;
/// Masses of the atoms.
pub const MASS: [f64; 3] = [15.999, 1.008, 1.008];
/// Length of a bond, and the distance of the hydrogens.
const BOND: f64 = 1.0;
const APART: f64 = 1.633;
/// Stiffness of the springs: energy is half of it times the square of what they are stretched by.
const BOND_STIFFNESS: f64 = 1108.6 * KILOCALORIE;
const APART_STIFFNESS: f64 = 200.0 * KILOCALORIE;
const CHARGE: [f64; 3] = [-0.82, 0.41, 0.41];
const COULOMB: f64 = 332.06 * KILOCALORIE;
const REPULSION: f64 = 629.4e3 * KILOCALORIE;
const ATTRACTION: f64 = 625.5 * KILOCALORIE;
/// Where forces begin to fade, as a share of the distance at which they end.
const FADE: f64 = 0.9;

/// A molecule at rest at the origin.
pub fn at_rest() -> Atoms {
    let half = APART / 2.0;
    let height = (BOND * BOND - half * half).sqrt();
    [[0.0; 3], [half, height, 0.0], [-half, height, 0.0]]
}

fn difference(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// The square of a vector's length.
fn square(v: [f64; 3]) -> f64 {
    v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
}

fn push(forces: &mut Atoms, atom: usize, by: f64, along: [f64; 3]) {
    (0..3).for_each(|axis| forces[atom][axis] += by * along[axis]);
}

/// The forces and the energy of a molecule's springs.
pub fn within(atoms: &Atoms) -> (Atoms, f64) {
    let mut forces = [[0.0; 3]; 3];
    let mut energy = 0.0;
    for (a, b, length, stiffness) in
        [(0, 1, BOND, BOND_STIFFNESS), (0, 2, BOND, BOND_STIFFNESS), (1, 2, APART, APART_STIFFNESS)]
    {
        let along = difference(atoms[a], atoms[b]);
        let distance = square(along).sqrt();
        let stretch = distance - length;
        energy += stiffness * stretch * stretch / 2.0;
        push(&mut forces, a, -stiffness * stretch / distance, along);
        push(&mut forces, b, stiffness * stretch / distance, along);
    }
    (forces, energy)
}

/// What moves a molecule so that it is the nearest of its images to another one, by the oxygens.
#[inline]
pub fn image(a: [f64; 3], b: [f64; 3], side: f64) -> [f64; 3] {
    difference(a, b).map(|distance| {
        if distance > side / 2.0 {
            side
        } else if distance < -side / 2.0 {
            -side
        } else {
            0.0
        }
    })
}

/// Whether two oxygens, the second moved, are so near that their molecules act on each other.
#[inline]
pub fn near(a: [f64; 3], b: [f64; 3], shift: [f64; 3], reach: f64) -> bool {
    square(difference(difference(a, b), shift)) < reach * reach
}

/// The forces that two molecules, the second moved by `shift`, have on each other, and their energy.
/// Both fade to nothing at a distance of `reach`.
pub fn between(a: &Atoms, b: &Atoms, shift: [f64; 3], reach: f64) -> (Atoms, Atoms, f64) {
    let (mut on_a, mut on_b) = ([[0.0; 3]; 3], [[0.0; 3]; 3]);
    let b = b.map(|atom| [atom[0] + shift[0], atom[1] + shift[1], atom[2] + shift[2]]);
    let oxygens = difference(a[0], b[0]);
    let distance = square(oxygens).sqrt();
    let (share, slope) = fade(distance / reach);
    let mut energy = 0.0;
    for (i, &from) in a.iter().enumerate() {
        for (j, &to) in b.iter().enumerate() {
            let along = difference(from, to);
            let inverse = square(along).sqrt().recip();
            let coulomb = COULOMB * CHARGE[i] * CHARGE[j] * inverse;
            energy += coulomb;
            let force = share * coulomb * inverse * inverse;
            push(&mut on_a, i, force, along);
            push(&mut on_b, j, -force, along);
        }
    }
    let inverse_6 = square(oxygens).powi(3).recip();
    energy += inverse_6 * (REPULSION * inverse_6 - ATTRACTION);
    let lennard_jones = inverse_6 * (12.0 * REPULSION * inverse_6 - 6.0 * ATTRACTION) / square(oxygens);
    let force = share * lennard_jones - energy * slope / (reach * distance);
    push(&mut on_a, 0, force, oxygens);
    push(&mut on_b, 0, -force, oxygens);
    (on_a, on_b, share * energy)
}

/// The share of a force that is left at a share of its reach, and its slope: from 1 to 0 smoothly.
fn fade(at: f64) -> (f64, f64) {
    if at < FADE {
        return (1.0, 0.0);
    }
    let x = ((at - FADE) / (1.0 - FADE)).min(1.0);
    (1.0 - x * x * (3.0 - 2.0 * x), -6.0 * x * (1.0 - x) / (1.0 - FADE))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: f64 = 1e-5;

    /// A second molecule some way off.
    fn other(distance: f64) -> Atoms {
        at_rest().map(|atom| [atom[1] + distance, atom[0] + 0.3, atom[2] + 0.5])
    }

    #[test]
    fn forces_between_molecules_are_the_slope_of_their_energy() {
        for distance in [2.8, 5.0, 9.4] {
            let (a, b) = (at_rest(), other(distance));
            let (on_a, on_b, _) = between(&a, &b, [0.0; 3], 10.0);
            for (atom, axis) in (0..3).flat_map(|atom| (0..3).map(move |axis| (atom, axis))) {
                let energy = |by: f64| {
                    let mut moved = a;
                    moved[atom][axis] += by;
                    between(&moved, &b, [0.0; 3], 10.0).2
                };
                let slope = (energy(STEP) - energy(-STEP)) / (2.0 * STEP);
                assert!((slope + on_a[atom][axis]).abs() < 1e-7, "{distance} {atom} {axis}");
                let sum: f64 = (0..3).map(|atom| on_a[atom][axis] + on_b[atom][axis]).sum();
                assert!(sum.abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_molecule_at_rest_has_no_force_within() {
        let (forces, energy) = within(&at_rest());
        assert!(energy < 1e-20 && forces.iter().flatten().all(|force| force.abs() < 1e-12));
        let mut bent = at_rest();
        bent[1][0] += 0.1;
        assert!(within(&bent).1 > 0.0);
    }

    #[test]
    fn molecules_act_through_the_walls() {
        let side = 20.0;
        let (a, b) = ([0.5, 10.0, 10.0], [19.5, 10.0, 10.0]);
        assert!(!near(a, b, [0.0; 3], 5.0));
        assert!(near(a, b, image(a, b, side), 5.0));
    }
}
