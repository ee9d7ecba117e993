//! Several CPUs: which batches go where.
//!
//! To deal batches so that the greatest load is least is NP-complete; for few CPUs it takes time in proportion
//! to a power of the load, by dynamic programming (section 3, after Cieliebak et al.). That is the reference.
//! A running system moves what lies wrong instead: [`even_out`] is the load balancer's rule (section 4.1).

use std::collections::BTreeMap;

/// Something that a load balancer may move: all tasks of a fragment together, or a task without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Movable {
    /// Its load, in any unit, such as its number of tasks.
    pub load: u64,
    /// The CPU that it is on.
    pub cpu: usize,
    /// Whether it is a fragment's tasks.
    pub is_fragment: bool,
}

/// The greatest load of a CPU.
pub fn greatest_load(loads: impl IntoIterator<Item = (usize, u64)>, cpus: usize) -> u64 {
    let mut sums = vec![0; cpus];
    loads.into_iter().for_each(|(cpu, load)| sums[cpu] += load);
    sums.into_iter().max().unwrap_or_default()
}

/// Loads summed up by CPU. A step of [`optimal`] has each that can be reached, with the one before and the CPU
/// that was chosen.
type Sums = Vec<u64>;

/// A CPU for each load, so that the greatest load of a CPU is the least possible. Time and memory grow with the
/// total load to the power of `cpus` - 1: for few CPUs.
pub fn optimal(loads: &[u64], cpus: usize) -> Vec<usize> {
    let mut steps: Vec<BTreeMap<Sums, (Sums, usize)>> = Vec::new();
    let mut reached = vec![vec![0; cpus]];
    for &load in loads {
        let mut next = BTreeMap::new();
        for sums in &reached {
            for cpu in 0..cpus {
                let mut grown = sums.clone();
                grown[cpu] += load;
                next.entry(grown).or_insert_with(|| (sums.clone(), cpu));
            }
        }
        reached = next.keys().cloned().collect();
        steps.push(next);
    }
    let Some(mut sums) = reached.into_iter().min_by_key(|sums| sums.iter().copied().max()) else {
        return Vec::new();
    };
    let mut chosen = Vec::with_capacity(loads.len());
    for step in steps.iter().rev() {
        let Some((before, cpu)) = step.get(&sums) else { break };
        chosen.push(*cpu);
        sums.clone_from(before);
    }
    chosen.reverse();
    chosen
}

/// Moves things while a CPU has a quarter more load than another and a move makes the greater of the two loads
/// less. Tasks without a fragment go first if there is more of them on the busier CPU; then whole fragments;
/// then such tasks in any case. Returns the numbers of what moved, in order.
pub fn even_out(things: &mut [Movable], cpus: usize) -> Vec<usize> {
    let mut moved = Vec::new();
    while let Some((number, cpu)) = next_move(things, cpus) {
        things[number].cpu = cpu;
        moved.push(number);
    }
    moved
}

/// What goes where next, if anything must.
fn next_move(things: &[Movable], cpus: usize) -> Option<(usize, usize)> {
    let mut all = vec![0; cpus];
    let mut without = vec![0; cpus];
    for thing in things {
        all[thing.cpu] += thing.load;
        if !thing.is_fragment {
            without[thing.cpu] += thing.load;
        }
    }
    let busiest = (0..cpus).rev().max_by_key(|&cpu| all[cpu])?;
    let least = (0..cpus).min_by_key(|&cpu| all[cpu])?;
    let excess = all[busiest] - all[least];
    if 4 * excess <= all[least] {
        return None;
    }
    let caused_by_others = without[busiest] > without[least];
    let helps =
        |(_, thing): &(usize, &Movable)| thing.cpu == busiest && thing.load > 0 && thing.load < excess;
    // The best move leaves the two loads nearest to each other.
    let rank = |&(number, thing): &(usize, &Movable)| {
        (thing.is_fragment == caused_by_others, thing.load.abs_diff(excess - thing.load), number)
    };
    things.iter().enumerate().filter(helps).min_by_key(rank).map(|(number, _)| (number, least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn thing(load: u64, cpu: usize, is_fragment: bool) -> Movable {
        Movable { load, cpu, is_fragment }
    }

    fn load_of(things: &[Movable], cpus: usize) -> u64 {
        greatest_load(things.iter().map(|thing| (thing.cpu, thing.load)), cpus)
    }

    #[test]
    fn a_whole_fragment_moves_and_a_load_within_a_quarter_stays() {
        let mut things = [thing(4, 0, true), thing(3, 0, true), thing(2, 1, true)];
        assert_eq!(even_out(&mut things, 2), [1]);
        assert_eq!(even_out(&mut [thing(5, 0, true), thing(4, 1, true)], 2), []);
    }

    #[test]
    fn tasks_without_a_fragment_move_first_if_they_cause_it() {
        let mut things = [thing(2, 0, true), thing(1, 0, false), thing(1, 0, false), thing(2, 1, true)];
        assert_eq!(even_out(&mut things, 2), [1]);
        let mut things = [thing(1, 0, true), thing(2, 0, true), thing(1, 0, false), thing(1, 1, false)];
        assert!(things[even_out(&mut things.clone(), 2)[0]].is_fragment);
        things.iter_mut().for_each(|thing| thing.load *= 10);
        assert!(things[even_out(&mut things.clone(), 2)[0]].is_fragment);
    }

    #[test]
    fn a_fragment_that_is_the_whole_load_stays() {
        assert_eq!(even_out(&mut [thing(8, 0, true)], 2), []);
    }

    fn loads(most: usize) -> impl Strategy<Value = Vec<(u64, bool)>> {
        proptest::collection::vec((1..30u64, any::<bool>()), 0..most)
    }

    proptest! {
        #[test]
        fn the_optimum_is_that_of_trying_all(loads in loads(7), cpus in 1..4usize) {
            let loads: Vec<u64> = loads.into_iter().map(|(load, _)| load).collect();
            let greatest = |cpu_of: &[usize]| greatest_load(cpu_of.iter().copied().zip(loads.iter().copied()), cpus);
            let all = (0..cpus.pow(loads.len() as u32)).map(|code| {
                let digits = (0..loads.len()).map(|at| code / cpus.pow(at as u32) % cpus);
                greatest(&digits.collect::<Vec<_>>())
            });
            let chosen = optimal(&loads, cpus);
            prop_assert_eq!(chosen.len(), loads.len());
            prop_assert_eq!(greatest(&chosen), all.min().unwrap());
        }

        /// Where no single move helps, the greatest load is at most 2 - 2 / (m + 1) times the least possible
        /// (Finn and Horowitz, "A linear time approximation algorithm for multiprocessor scheduling", 1979);
        /// where the rule stops before, all loads are within a quarter.
        #[test]
        fn the_rule_ends_near_the_optimum(loads in loads(12), cpus in 1..4usize, start in 0..4usize) {
            let mut things: Vec<Movable> =
                loads.iter().map(|&(load, is_fragment)| thing(load, start % cpus, is_fragment)).collect();
            let sizes: Vec<u64> = loads.iter().map(|&(load, _)| load).collect();
            even_out(&mut things, cpus);
            let best = greatest_load(optimal(&sizes, cpus).into_iter().zip(sizes.iter().copied()), cpus);
            let bound = (2.0 - 2.0 / (cpus as f64 + 1.0)).max(1.25);
            prop_assert!(load_of(&things, cpus) as f64 <= bound * best as f64 + 1e-9);
        }

        #[test]
        fn the_greatest_load_never_grows(
            things in proptest::collection::vec((0..30u64, 0..4usize, any::<bool>()), 0..30)
        ) {
            let mut things: Vec<Movable> =
                things.into_iter().map(|(load, cpu, is_fragment)| thing(load, cpu, is_fragment)).collect();
            let before = load_of(&things, 4);
            even_out(&mut things, 4);
            prop_assert!(load_of(&things, 4) <= before);
        }
    }
}
