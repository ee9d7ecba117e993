//! What followers are told, step by step, on a machine that does what a fair scheduler does.

#![allow(clippy::unwrap_used, reason = "tests")]

use hearth_share::share::shares;
use hearth_share::steady::{Look, Number, Present, Steady};
use hearth_share::{Application, Demand, Mask};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::HashSet;

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

/// Where a program runs, and with which weight.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    weight: f64,
    /// Bound to the first half of the CPUs.
    is_bound: bool,
}

const ANYWHERE: Place = Place { weight: 1024.0, is_bound: false };

/// A fair scheduler shares the CPUs out among the threads that run, by their weights.
struct Machine {
    cpus: usize,
    programs: Vec<Program>,
    places: Vec<Place>,
    told: Vec<u32>,
    seen: Seen,
    steady: Steady,
}

/// What is seen of those who do not follow.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seen {
    /// What they use together.
    Together,
    /// Each, by what it uses; what it waits for is estimated.
    Each,
    /// Each, with what it waits for.
    Waiting,
}

impl Machine {
    fn new(cpus: usize, programs: &[Program]) -> Self {
        Self {
            cpus,
            programs: programs.to_vec(),
            places: vec![ANYWHERE; programs.len()],
            told: vec![0; programs.len()],
            seen: Seen::Together,
            steady: Steady::default(),
        }
    }

    fn demand(&self) -> Demand {
        let mut demand = Demand::of_machine(Mask::new(0..self.cpus));
        demand.mask(&Mask::new(0..self.cpus.div_ceil(2)));
        demand
    }

    fn application(&self, at: usize, want: f64) -> Application {
        let Place { weight, is_bound } = self.places[at];
        Application { group: 0, weight, mask: usize::from(is_bound && self.cpus > 1), want }
    }

    /// CPUs that each program uses.
    fn used(&self) -> Vec<f64> {
        let mut demand = self.demand();
        let mut programs = Vec::new();
        for (at, program) in self.programs.iter().enumerate() {
            let threads = match program {
                // Nobody has told it anything: it sees all.
                Program::Parallel if self.told[at] == 0 => self.cpus as u32,
                Program::Parallel => self.told[at],
                Program::Serial => 1,
                Program::Idle => 0,
                Program::Unmanaged(threads) => *threads,
            };
            demand.applications.extend((0..threads).map(|_| self.application(at, 1.0)));
            programs.extend((0..threads).map(|_| at));
        }
        let mut used = vec![0.0; self.programs.len()];
        programs.into_iter().zip(shares(&demand)).for_each(|(at, share)| used[at] += share);
        used
    }

    fn step(&mut self, noise: f64) -> Vec<u32> {
        let look = self.look(noise);
        self.tell(look, Steady::step)
    }

    fn between(&mut self) -> Vec<u32> {
        let look = self.look(0.0);
        self.tell(look, Steady::between)
    }

    fn tell(&mut self, look: Look, step: fn(&mut Steady, Look) -> Vec<Number>) -> Vec<u32> {
        let ids: Vec<usize> = look.followers.iter().map(|follower| follower.id.0 as usize).collect();
        let numbers = step(&mut self.steady, look);
        ids.into_iter().zip(numbers).for_each(|(at, number)| self.told[at] = number.cpus);
        self.told()
    }

    fn look(&self, noise: f64) -> Look {
        let mut demand = self.demand();
        let (mut followers, mut others, mut others_use) = (Vec::new(), Vec::new(), noise);
        let is_saturated = self.used().iter().sum::<f64>() > 0.95 * self.cpus as f64;
        for (at, used) in self.used().into_iter().enumerate() {
            if let Program::Unmanaged(threads) = self.programs[at] {
                others_use += used;
                if self.seen != Seen::Together && used > 0.02 {
                    others.push((demand.applications.len(), used));
                    let want = if is_saturated { self.want(used, threads.into()) } else { used };
                    demand.applications.push(self.application(at, want));
                }
            } else {
                let application = demand.applications.len();
                followers.push(Present {
                    id: (at as i32, 0),
                    application,
                    used,
                    before: 0.0,
                    told: self.told[at],
                });
                demand.applications.push(self.application(at, self.cpus as f64));
            }
        }
        Look { demand, followers, others, others_use }
    }

    /// Of a program that does not follow, where CPUs are short.
    fn want(&self, used: f64, threads: f64) -> f64 {
        match self.seen {
            Seen::Waiting => threads,
            _ if used.fract() >= 0.5 => used.ceil().min(threads.max(used)),
            _ => used,
        }
    }

    fn steps(&mut self, steps: usize) -> Vec<u32> {
        (0..steps).for_each(|_| drop(self.step(0.0)));
        self.told()
    }

    fn add(&mut self, program: Program) {
        self.programs.push(program);
        self.places.push(ANYWHERE);
        self.told.push(0);
    }

    fn remove(&mut self) {
        self.programs.pop();
        self.places.pop();
        self.told.pop();
    }

    /// The last of many steps in which a number was another than in the step before; 0 for none.
    fn last_change(&mut self) -> usize {
        let mut told = self.told();
        let changes = (1..=15 * SETTLED).filter(|_| {
            let now = self.step(0.0);
            std::mem::replace(&mut told, now.clone()) != now
        });
        changes.last().unwrap_or(0)
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
    machine.add(Parallel);
    assert_eq!(machine.steps(1), [8, 8], "who has just come gets its share at once");
    machine.remove();
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
fn newcomers_have_their_numbers_before_the_next_step() {
    let mut machine = Machine::new(16, &[Parallel]);
    assert_eq!(machine.steps(20), [16]);
    machine.add(Parallel);
    assert_eq!(machine.between(), [8, 8]);
    machine.add(Parallel);
    assert_eq!(machine.between(), [6, 5, 5]);
    machine.remove();
    machine.remove();
    assert_eq!(machine.between(), [6], "a number goes up only when that has held");
    assert_eq!(machine.steps(3), [16]);
}

#[test]
fn what_a_newcomer_used_before_it_followed_was_no_use_of_others() {
    let mut steady = Steady::default();
    let mut demand = Demand::of_machine(Mask::new(0..4));
    let alone = |others_use| Look {
        demand: Demand::of_machine(Mask::new(0..4)),
        followers: vec![],
        others: vec![],
        others_use,
    };
    (0..10).for_each(|_| drop(steady.step(alone(3.0))));
    demand.applications.push(Application { group: 0, weight: 1024.0, mask: 0, want: 4.0 });
    let newcomer = Present { id: (1, 0), application: 0, used: 0.0, before: 3.0, told: 0 };
    let look = Look { demand, followers: vec![newcomer], others: vec![], others_use: 0.0 };
    assert_eq!(steady.between(look)[0].cpus, 4);
}

#[test]
fn who_is_bound_and_free_again_has_its_number_back() {
    let mut machine = Machine::new(16, &[Parallel]);
    machine.steps(20);
    for _ in 0..3 {
        machine.places[0].is_bound = true;
        assert_eq!(machine.steps(1), [8]);
        machine.places[0].is_bound = false;
        assert_eq!(machine.steps(4), [16]);
    }
}

#[test]
fn a_new_leader_goes_on_with_what_was_told() {
    let mut machine = Machine::new(16, &[Parallel, Parallel]);
    machine.steps(20);
    machine.told[1] = 5;
    machine.steady = Steady::default();
    assert_eq!(machine.steps(1), [8, 5]);
    assert_eq!(machine.steps(SETTLED), [8, 8]);
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

fn seen() -> impl Strategy<Value = Seen> {
    prop_oneof![Just(Seen::Together), Just(Seen::Each), Just(Seen::Waiting)]
}

fn places() -> impl Strategy<Value = Vec<Place>> {
    let weight = prop_oneof![Just(1024.0), Just(335.0), Just(3121.0)];
    let place = (weight, any::<bool>()).prop_map(|(weight, is_bound)| Place { weight, is_bound });
    prop::collection::vec(place, 8)
}

/// One of some programs comes to do something else.
#[derive(Clone, Debug)]
struct Change {
    cpus: usize,
    programs: Vec<Program>,
    places: Vec<Place>,
    seen: Seen,
    at: prop::sample::Index,
    after: Program,
}

impl Change {
    /// When it has just happened.
    fn machine(&self) -> Machine {
        let mut machine = Machine::new(self.cpus, &self.programs);
        machine.places = self.places[..self.programs.len()].to_vec();
        machine.seen = self.seen;
        machine.steps(6 * SETTLED);
        let at = self.at.index(self.programs.len());
        machine.programs[at] = match (self.programs[at], self.after) {
            // What does not follow goes on not to follow.
            (Unmanaged(_), Unmanaged(threads)) => Unmanaged(threads),
            (Unmanaged(threads), _) => Unmanaged(threads / 2),
            (before, Unmanaged(_)) => before,
            (_, after) => after,
        };
        machine
    }
}

fn change() -> impl Strategy<Value = Change> {
    let parts = (1_usize..64, programs(), places(), seen(), any::<prop::sample::Index>(), programs());
    parts.prop_map(|(cpus, programs, places, seen, at, after)| Change {
        cpus,
        programs,
        places,
        seen,
        at,
        after: after[0],
    })
}

#[test]
fn after_a_step_in_load_numbers_settle_within_a_second_in_nearly_all_mixes() {
    let mut runner = TestRunner::deterministic();
    let mixes = 1000;
    let last_changes =
        (0..mixes).map(|_| change().new_tree(&mut runner).unwrap().current().machine().last_change());
    let late: Vec<usize> = last_changes.filter(|&steps| steps > SETTLED).collect();
    assert!(late.len() * 50 <= mixes, "{} of {mixes} take longer", late.len());
    assert!(late.iter().all(|&steps| steps <= 3 * SETTLED), "{late:?} steps");
}

/// The two followers' numbers go up by turns, and each time down again by a little less; when they stand, there is one
/// more try.
#[test]
fn numbers_that_go_up_in_vain_may_take_three_seconds() {
    let place = |weight| Place { weight, is_bound: false };
    let mut machine = Machine::new(48, &[Serial, Unmanaged(5), Idle, Unmanaged(11)]);
    machine.places = vec![place(3121.0), place(1024.0), place(1024.0), place(335.0)];
    machine.seen = Seen::Each;
    machine.steps(6 * SETTLED);
    machine.programs[0] = Parallel;
    assert_eq!(machine.last_change(), 31);
}

proptest! {
    /// Numbers that went up in vain take longer, and then stay down. In most mixes of those that is three seconds; see
    /// above.
    #[test]
    fn after_a_step_in_load_numbers_come_to_rest(change in change()) {
        let mut machine = change.machine();
        machine.steps(5 * SETTLED);
        let settled = machine.told();
        for _ in 0..150 {
            prop_assert_eq!(machine.step(0.0), settled.clone());
        }
    }

    #[test]
    fn numbers_of_all_who_want_more_make_up_the_machine(
        cpus in 1_usize..64, places in places(), count in 1_usize..8, seen in seen(),
    ) {
        let mut machine = Machine::new(cpus, &vec![Parallel; count]);
        machine.seen = seen;
        machine.places = places[..count].iter().map(|place| Place { is_bound: false, ..*place }).collect();
        let told: u32 = machine.steps(SETTLED).iter().sum();
        // Who would have less than one CPU has one.
        prop_assert!((cpus..=cpus + count - 1).contains(&(told as usize)), "{told} of {cpus}");
    }

    /// Where the numbers are nearly others, a wavering load may make them so, also in vain; but none goes up to the same
    /// number twice.
    #[test]
    fn a_wavering_load_makes_no_number_go_back_and_forth(
        cpus in 1_usize..64, programs in programs(), noise in prop::collection::vec(-0.02..0.02, 100),
        seen in seen(),
    ) {
        let mut machine = Machine::new(cpus, &programs);
        machine.seen = seen;
        let mut told = vec![machine.steps(40)];
        let mut raised = HashSet::new();
        for noise in noise {
            let now = machine.step(noise);
            let before = told.last().unwrap();
            for (follower, (before, now)) in before.iter().zip(&now).enumerate() {
                prop_assert!(now <= before || raised.insert((follower, *now)), "{told:?}, then {now:?}");
            }
            if *before != now {
                told.push(now);
            }
        }
    }
}
