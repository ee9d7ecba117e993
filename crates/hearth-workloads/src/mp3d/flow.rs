//! The physics: how particles move, bounce and collide. Lengths in cells, times in steps.

use rand_core::Rng;
use rand_pcg::Pcg32;

/// Speed of the stream: hypersonic, several times the thermal speed.
const STREAM: f64 = 0.6;
/// The most that each component of the thermal velocity can be.
const THERMAL: f64 = 0.3;
/// Probability of a collision, for each particle in the cell and unit of relative speed.
const COLLISION_RATE: f64 = 0.5;

/// The cells that the tunnel is divided into, a box with an obstacle in it.
#[derive(Debug)]
pub struct Grid {
    /// Cells along each axis.
    pub cells: [u32; 3],
    /// The obstacle's first cell and end along each axis.
    pub obstacle: [(u32, u32); 3],
}

/// One particle of the gas, a molecule of two atoms: 80 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Particle {
    /// Where it is.
    pub position: [f64; 3],
    /// Its cell.
    pub cell: u32,
    /// Bounces off a wall or the obstacle so far.
    pub bounces: u32,
    /// How far it goes in a step.
    pub velocity: [f64; 3],
    /// Energy of its rotation.
    pub rotation: f64,
    /// Energy of its vibration.
    pub vibration: f64,
    /// Collisions so far.
    pub collisions: u64,
}

impl Particle {
    /// Kinetic and internal energy, for unit mass.
    pub fn energy(&self) -> f64 {
        let kinetic: f64 = self.velocity.iter().map(|v| v * v).sum();
        kinetic / 2.0 + self.rotation + self.vibration
    }
}

impl Grid {
    /// Number of cells.
    pub const fn cells(&self) -> usize {
        (self.cells[0] * self.cells[1] * self.cells[2]) as usize
    }

    /// The cell of a position; `None` outside of the tunnel and in the obstacle.
    pub fn cell_of(&self, position: [f64; 3]) -> Option<usize> {
        let mut cell = [0; 3];
        for axis in 0..3 {
            if !(0.0..f64::from(self.cells[axis])).contains(&position[axis]) {
                return None;
            }
            cell[axis] = position[axis] as u32;
        }
        let in_obstacle =
            cell.iter().zip(self.obstacle).all(|(&at, (start, end))| (start..end).contains(&at));
        let number = (cell[0] * self.cells[1] + cell[1]) * self.cells[2] + cell[2];
        (!in_obstacle).then_some(number as usize)
    }
}

/// The gas, seen by one process: what happens by chance comes from its random numbers.
pub struct Flow {
    grid: &'static Grid,
    random: Pcg32,
}

impl Flow {
    /// A flow through a tunnel, with its random numbers.
    pub fn new(grid: &'static Grid, random: Pcg32) -> Self {
        Self { grid, random }
    }

    /// A number in [0, 1).
    fn unit(&mut self) -> f64 {
        f64::from(self.random.next_u32()) / f64::from(1 << 30) / 4.0
    }

    fn thermal(&mut self) -> f64 {
        (self.unit() + self.unit() + self.unit() - 1.5) * (THERMAL / 1.5)
    }

    fn streaming(&mut self, position: [f64; 3], cell: usize) -> Particle {
        let velocity = [STREAM + self.thermal(), self.thermal(), self.thermal()];
        let rotation = THERMAL * THERMAL / 10.0;
        Particle { position, velocity, rotation, cell: cell as u32, ..Particle::default() }
    }

    /// A particle of the stream anywhere in the tunnel.
    pub fn scattered(&mut self) -> Particle {
        loop {
            let position = [0, 1, 2].map(|axis| self.unit() * f64::from(self.grid.cells[axis]));
            if let Some(cell) = self.grid.cell_of(position) {
                return self.streaming(position, cell);
            }
        }
    }

    /// A particle that enters the tunnel.
    fn entering(&mut self) -> Particle {
        loop {
            let mut position = [0, 1, 2].map(|axis| self.unit() * f64::from(self.grid.cells[axis]));
            position[0] = self.unit() * STREAM;
            if let Some(cell) = self.grid.cell_of(position) {
                return self.streaming(position, cell);
            }
        }
    }

    /// Moves a particle by one step. Walls mirror it, the obstacle throws it back, and at the
    /// tunnel's ends it leaves and another one enters. Returns the energy that came in by that.
    pub fn advance(&mut self, particle: &mut Particle) -> f64 {
        let before = particle.energy();
        let mut to = particle.position;
        (0..3).for_each(|axis| to[axis] += particle.velocity[axis]);
        if !(0.0..f64::from(self.grid.cells[0])).contains(&to[0]) {
            *particle = self.entering();
            return particle.energy() - before;
        }
        for (axis, at) in to.iter_mut().enumerate().skip(1) {
            let end = f64::from(self.grid.cells[axis]);
            if !(0.0..end).contains(at) {
                *at = if *at < 0.0 { -*at } else { 2.0 * end - *at };
                particle.velocity[axis] = -particle.velocity[axis];
                particle.bounces += 1;
            }
        }
        match self.grid.cell_of(to) {
            Some(cell) => (particle.position, particle.cell) = (to, cell as u32),
            None => {
                particle.velocity = particle.velocity.map(|v| -v);
                particle.bounces += 1;
            }
        }
        0.0
    }

    /// Perhaps collides two particles of a cell with `population` particles: a hard-sphere
    /// collision, after which they part in a direction drawn at random, and share the energy of
    /// rotation and of vibration. Momentum and energy stay. Says whether they collided.
    pub fn collide(&mut self, a: &mut Particle, b: &mut Particle, population: u32) -> bool {
        let difference: [f64; 3] = [0, 1, 2].map(|axis| a.velocity[axis] - b.velocity[axis]);
        let speed = difference.iter().map(|d| d * d).sum::<f64>().sqrt();
        if self.unit() >= COLLISION_RATE * f64::from(population) * speed {
            return false;
        }
        let direction = self.direction();
        for (axis, along) in direction.into_iter().enumerate() {
            let mean = (a.velocity[axis] + b.velocity[axis]) / 2.0;
            a.velocity[axis] = mean + along * speed / 2.0;
            b.velocity[axis] = mean - along * speed / 2.0;
        }
        let rotation = (a.rotation + b.rotation) / 2.0;
        let vibration = (a.vibration + b.vibration) / 2.0;
        (a.rotation, b.rotation) = (rotation, rotation);
        (a.vibration, b.vibration) = (vibration, vibration);
        (a.collisions, b.collisions) = (a.collisions + 1, b.collisions + 1);
        true
    }

    /// A unit vector in any direction (Marsaglia's method: no trigonometry, so the same everywhere).
    fn direction(&mut self) -> [f64; 3] {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 {
                let root = 2.0 * (1.0 - square).sqrt();
                return [x * root, y * root, 1.0 - 2.0 * square];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    static GRID: Grid = Grid { cells: [64, 32, 16], obstacle: [(24, 32), (11, 21), (0, 8)] };

    fn flow() -> Flow {
        Flow::new(&GRID, Pcg32::seed_from_u64(4))
    }

    #[test]
    fn particles_stay_in_the_tunnel_and_out_of_the_obstacle() {
        let mut flow = flow();
        let mut particles: Vec<Particle> = (0..500).map(|_| flow.scattered()).collect();
        for _ in 0..200 {
            for particle in &mut particles {
                flow.advance(particle);
                assert_eq!(GRID.cell_of(particle.position), Some(particle.cell as usize));
            }
        }
        assert!(particles.iter().any(|particle| particle.bounces > 0));
    }

    #[test]
    fn a_collision_keeps_momentum_and_energy() {
        let mut flow = flow();
        let mut collisions = 0;
        for _ in 0..1000 {
            let (mut a, mut b) = (flow.scattered(), flow.scattered());
            let (a0, b0) = (a, b);
            if flow.collide(&mut a, &mut b, 10) {
                collisions += 1;
                let energy = |a: &Particle, b: &Particle| a.energy() + b.energy();
                assert!((energy(&a, &b) - energy(&a0, &b0)).abs() < 1e-5);
                for axis in 0..3 {
                    let momentum = |a: &Particle, b: &Particle| a.velocity[axis] + b.velocity[axis];
                    assert!((momentum(&a, &b) - momentum(&a0, &b0)).abs() < 1e-5);
                }
            }
        }
        assert!(collisions > 100, "{collisions}");
    }

    #[test]
    fn the_stream_brings_in_as_much_energy_as_it_reports() {
        let mut flow = flow();
        let mut particles: Vec<Particle> = (0..500).map(|_| flow.scattered()).collect();
        let energy = |particles: &[Particle]| particles.iter().map(Particle::energy).sum::<f64>();
        let before = energy(&particles);
        let mut inflow = 0.0;
        for _ in 0..50 {
            inflow += particles.iter_mut().map(|particle| flow.advance(particle)).sum::<f64>();
        }
        assert!((energy(&particles) - before - inflow).abs() < 1e-9 * before);
    }
}
