//! What followers are told, step by step, on a machine that does what a fair scheduler does.

use hearth_share::steady::{Look, Present, Steady};
use hearth_share::{Application, Demand, Mask};
use proptest::prelude::*;

/// A program on the modelled machine.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Program {
    /// Follows, and uses as many CPUs as it is told.
    Parallel,
    /// Follows, and has one thread that runs.
    Serial,
    /// Follows, and sleeps.
    Idle,
    /// Does not follow: so many threads that run.
    Unmanaged(u32),
}

/// Each thread that runs gets the same.
struct Machine {
    cpus: usize,
    programs: Vec<Program>,
    told: Vec<u32>,
    steady: Steady,
}

impl Machine {
    fn new(cpus: usize, programs: &[Program]) -> Self {
        Self {
            cpus,
            programs: programs.to_vec(),
            told: vec![cpus as u32; programs.len()],
            steady: Steady::default(),
        }
    }

    fn step(&mut self, noise: f64) -> Vec<u32> {
        let threads = |(at, program): (usize, &Program)| match program {
            Program::Parallel => self.told[at],
            Program::Serial => 1,
            Program::Idle => 0,
            Program::Unmanaged(threads) => *threads,
        };
        let threads: Vec<f64> = self.programs.iter().enumerate().map(threads).map(f64::from).collect();
        let each = (self.cpus as f64 / threads.iter().sum::<f64>()).min(1.0);
        let mut demand = Demand::of_machine(Mask::new(0..self.cpus));
        let (mut followers, mut others_use) = (Vec::new(), noise);
        for (at, program) in self.programs.iter().enumerate() {
            let used = threads[at] * each;
            if let Program::Unmanaged(_) = program {
                others_use += used;
            } else {
                let application = demand.applications.len();
                followers.push(Present { id: (at as i32, 0), application, used, before: 0.0, told: 0 });
                demand.applications.push(Application {
                    group: 0,
                    weight: 1024.0,
                    mask: 0,
                    want: self.cpus as f64,
                });
            }
        }
        let ids: Vec<usize> = followers.iter().map(|follower| follower.id.0 as usize).collect();
        let numbers = self.steady.step(Look { demand, followers, others: Vec::new(), others_use });
        ids.into_iter().zip(numbers).for_each(|(at, number)| self.told[at] = number.cpus);
        self.told()
    }

    fn steps(&mut self, steps: usize) -> Vec<u32> {
        (0..steps).for_each(|_| drop(self.step(0.0)));
        self.told()
    }

    /// The followers' numbers.
    fn told(&self) -> Vec<u32> {
        let is_told = |at: &usize| !matches!(self.programs[*at], Program::Unmanaged(_));
        (0..self.programs.len()).filter(is_told).map(|at| self.told[at]).collect()
    }
}

use Program::{Idle, Parallel, Serial, Unmanaged};

/// A second.
const SETTLED: usize = 10;

#[test]
fn one_program_alone_has_the_machine_and_two_have_half_each() {
    let mut machine = Machine::new(16, &[Parallel]);
    assert_eq!(machine.steps(1), [16]);
    machine.programs.push(Parallel);
    machine.told.push(16);
    assert_eq!(machine.steps(1), [8, 8], "who has just come gets its share at once");
    machine.programs.pop();
    machine.told.pop();
    assert_eq!(machine.steps(SETTLED), [16]);
}

#[test]
fn beside_a_spinner_that_follows_nobody_one_of_two_cpus_is_left() {
    let mut machine = Machine::new(2, &[Parallel, Unmanaged(0)]);
    assert_eq!(machine.steps(20), [2]);
    machine.programs[1] = Unmanaged(1);
    assert_eq!(machine.steps(SETTLED), [1]);
    assert_eq!(machine.steps(100), [1]);
    machine.programs[1] = Unmanaged(0);
    assert_eq!(machine.steps(SETTLED), [2]);
}

#[test]
fn what_a_sleeper_does_not_use_is_lent_and_comes_back_in_two_steps() {
    for cpus in [2, 16] {
        let half = cpus / 2;
        let mut machine = Machine::new(cpus as usize, &[Parallel, Parallel]);
        assert_eq!(machine.steps(20), [half, half]);
        machine.programs[1] = Idle;
        assert_eq!(machine.steps(SETTLED), [cpus, half]);
        assert_eq!(machine.steps(50), [cpus, half]);
        machine.programs[1] = Parallel;
        assert_eq!(machine.steps(2), [half, half]);
    }
}

#[test]
fn a_serial_phase_keeps_its_programs_number_and_a_short_one_keeps_all() {
    let mut machine = Machine::new(16, &[Parallel, Parallel]);
    machine.steps(20);
    for _ in 0..10 {
        machine.programs[1] = Serial;
        assert_eq!(machine.steps(4), [8, 8]);
        machine.programs[1] = Parallel;
        assert_eq!(machine.steps(2), [8, 8]);
    }
    machine.programs[1] = Serial;
    let told = machine.steps(SETTLED);
    assert!(told[0] >= 14 && told[1] == 8, "{told:?}");
}

#[test]
fn a_burst_of_half_a_step_changes_nothing() {
    let mut machine = Machine::new(2, &[Parallel]);
    machine.steps(20);
    for step in 0..40 {
        let burst = if step % 10 == 0 { 0.5 } else { 0.0 };
        assert_eq!(machine.step(burst), [2]);
    }
}

fn programs() -> impl Strategy<Value = Vec<Program>> {
    let program = prop_oneof![Just(Parallel), Just(Serial), Just(Idle), (0_u32..12).prop_map(Unmanaged)];
    prop::collection::vec(program, 1..8)
}

proptest! {
    /// One changes what it does. What others then use changes too, and who lends: that takes a second
    /// step.
    #[test]
    fn after_a_step_in_load_numbers_settle_within_two_seconds_and_stay(
        cpus in 1_usize..64, mut programs in programs(), at: prop::sample::Index, after in programs(),
    ) {
        let mut machine = Machine::new(cpus, &programs);
        machine.steps(40);
        let at = at.index(programs.len());
        programs[at] = after[0];
        machine.programs = programs.clone();
        let settled = machine.steps(2 * SETTLED);
        for _ in 0..100 {
            prop_assert_eq!(machine.step(0.0), settled.clone());
        }
    }

    /// Where the numbers are nearly others, a wavering load may make them so: once, and not back.
    #[test]
    fn a_wavering_load_makes_no_number_go_back_and_forth(
        cpus in 1_usize..64, programs in programs(), noise in prop::collection::vec(-0.02..0.02, 100),
    ) {
        let mut machine = Machine::new(cpus, &programs);
        let mut told = vec![machine.steps(40)];
        for noise in noise {
            let now = machine.step(noise);
            if told.last() != Some(&now) {
                prop_assert!(!told.contains(&now), "{told:?}, then {now:?}");
                told.push(now);
            }
        }
    }
}
