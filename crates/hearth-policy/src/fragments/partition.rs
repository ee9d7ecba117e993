//! Several CPUs: which batches go where.
//!
//! To deal batches so that the greatest load is least is NP-complete; for few CPUs it takes time in proportion
//! to a power of the load, by dynamic programming (section 3, after Cieliebak et al.). That is the reference
//! for the scheduler, which moves what lies wrong instead (`bpf/fragments.h`).

use std::collections::BTreeMap;

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_optimum_is_that_of_trying_all(
            loads in proptest::collection::vec(1..30u64, 0..7),
            cpus in 1..4usize,
        ) {
            let greatest = |cpu_of: &[usize]| greatest_load(cpu_of.iter().copied().zip(loads.iter().copied()), cpus);
            let all = (0..cpus.pow(loads.len() as u32)).map(|code| {
                let digits = (0..loads.len()).map(|at| code / cpus.pow(at as u32) % cpus);
                greatest(&digits.collect::<Vec<_>>())
            });
            let chosen = optimal(&loads, cpus);
            prop_assert_eq!(chosen.len(), loads.len());
            prop_assert_eq!(greatest(&chosen), all.min().unwrap());
        }
    }
}
