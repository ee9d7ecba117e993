//! Rounds: what pairs of runs, of two schedulers in the same round of the same seed, say of them.

use super::comparison::is_rate;
use super::summary::{MEASURES, PAIRED, Summary};
use hearth_emulate::{Run, Scheduler};
use hearth_report::Measure;
use hearth_report::pairs::{Difference, Pair, Verdict, compare, least_pairs};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What follows the first scheduler's name where it is compared with itself.
const AGAIN: &str = " again";

/// What is said of a scheduler against the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairsOf {
    /// Its name; the first once more is called so.
    pub scheduler: String,
    /// So many pairs there are.
    pub pairs: usize,
    /// By measure.
    pub of: BTreeMap<&'static str, Difference>,
    /// By what the command measured itself.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, Difference>,
}

/// Of each scheduler but the first, and of the first once more, which comes first: what chance does is in its interval.
pub fn of(schedulers: &[Scheduler], runs: &[Vec<Run>], again: &[Run]) -> Vec<PairsOf> {
    let (Some(base), Some(name)) = (runs.first(), schedulers.first().map(Scheduler::name)) else {
        return Vec::new();
    };
    let others =
        schedulers.iter().zip(runs).skip(1).map(|(scheduler, runs)| (scheduler.name(), runs.as_slice()));
    let all = std::iter::once((self::again(&name), again)).chain(others);
    all.filter_map(|(name, runs)| of_one(name, base, runs)).collect()
}

/// What a scheduler is called where it is compared with itself.
pub fn again(name: &str) -> String {
    format!("{name}{AGAIN}")
}

fn of_one(scheduler: String, base: &[Run], runs: &[Run]) -> Option<PairsOf> {
    let of_same_round = |run: &Run| base.iter().find(|base| (base.seed, base.round) == (run.seed, run.round));
    let pairs: Vec<(&Run, &Run)> = runs.iter().filter_map(|run| Some((of_same_round(run)?, run))).collect();
    let summaries: Vec<[Summary; 2]> = pairs
        .iter()
        .map(|&(base, run)| [base, run].map(|run| Summary::of(std::slice::from_ref(run))))
        .collect();
    let difference = |measure: &Measure<Summary>| {
        let of = |summary: &Summary| (measure.of)(summary).mean;
        let values = summaries.iter().map(|[base, other]| Pair { base: of(base), other: of(other) });
        Some((measure.key, compared(values, false)?))
    };
    let own_difference = |name: &String| {
        let of = |run: &Run| run.measures.get(name).copied().unwrap_or(0.0);
        let values = pairs.iter().map(|(base, run)| Pair { base: of(base), other: of(run) });
        Some((name.clone(), compared(values, is_rate(name))?))
    };
    let paired = MEASURES.iter().filter(|measure| PAIRED.contains(&measure.key));
    let of: BTreeMap<_, _> = paired.filter_map(difference).collect();
    let names: BTreeSet<&String> = base.iter().flat_map(|run| run.measures.keys()).collect();
    let measures = names.into_iter().filter_map(own_difference).collect();
    (!of.is_empty()).then_some(PairsOf { scheduler, pairs: pairs.len(), of, measures })
}

/// What pairs show, of those that have a ratio.
fn compared(pairs: impl Iterator<Item = Pair>, higher_is_better: bool) -> Option<Difference> {
    let pairs: Vec<Pair> = pairs.filter(|pair| pair.base > 0.0 && pair.other > 0.0).collect();
    compare(&pairs, higher_is_better)
}

/// A ratio with its interval and what follows.
pub fn text(difference: &Difference) -> String {
    let interval = interval(difference).map_or_else(String::new, |interval| format!(" ({interval})"));
    format!("{:.3}{interval}\n{}", difference.ratio, verdict(difference))
}

/// The same in one line.
pub fn line(difference: &Difference) -> String {
    text(difference).replace('\n', ", ")
}

fn interval(difference: &Difference) -> Option<String> {
    difference.interval.map(|(low, high)| format!("{low:.3} to {high:.3}"))
}

fn verdict(difference: &Difference) -> &'static str {
    match difference.verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "no difference",
        Verdict::TooFew => "too few",
    }
}

/// What pairs say of each scheduler but the first, by elapsed time or by CPU time; nothing without such pairs.
pub fn sentence(base: &str, pairs: &[PairsOf], is_timed: bool) -> Option<String> {
    let (key, name) = if is_timed { ("guest_ms", "Elapsed time") } else { ("cpu_ms", "CPU time") };
    let said = |of: &PairsOf| {
        let difference = of.of.get(key)?;
        let interval = interval(difference).map_or_else(String::new, |interval| format!("; {interval}"));
        Some(format!("{} {} ({:.3}{interval})", of.scheduler, verdict(difference), difference.ratio))
    };
    let said: Vec<String> = pairs.iter().filter_map(said).collect();
    (!said.is_empty()).then(|| format!("{name} against {base}, in the same round: {}.", said.join(", ")))
}

/// What a reader of so many pairs should know; nothing if they are enough.
pub fn note(pairs: u32) -> Option<String> {
    let least = least_pairs();
    (pairs < least).then(|| {
        format!("{pairs} pairs cannot show a difference; {least} is the least: raise --rounds or --seeds")
    })
}

#[cfg(test)]
mod tests {
    use super::super::comparison::tests::run;
    use super::*;

    /// Rounds in which a scheduler takes so many million instructions.
    fn rounds(name: &str, instructions: &[u64]) -> Vec<Run> {
        let run = |(&million, round): (&u64, u32)| Run { round, ..run(name, 1, million, 1) };
        instructions.iter().zip(1..).map(run).collect()
    }

    #[test]
    fn runs_of_one_round_are_a_pair_and_the_first_scheduler_is_compared_with_itself() {
        let base = rounds("kernel", &[99, 109, 119, 129, 139, 149]);
        let mut other = rounds("a", &[49, 54, 59, 64, 69, 74]);
        other.reverse();
        let again = rounds("kernel", &[99, 109, 119, 129, 139, 149]);
        let schedulers = [Scheduler::Kernel, Scheduler::KernelCache];
        let found = of(&schedulers, &[base, other[1..].to_vec()], &again);
        assert_eq!((found[0].scheduler.as_str(), found[0].pairs), ("kernel again", 6));
        assert_eq!(found[0].of["cpu_ms"].verdict, Verdict::NoDifference);
        assert_eq!((found[1].scheduler.as_str(), found[1].pairs), ("kernel-cache", 5));
        let cpu = &found[1].of["cpu_ms"];
        assert!((cpu.ratio - 0.5).abs() < 0.01 && cpu.verdict == Verdict::TooFew, "{cpu:?}");
        assert!(text(cpu).ends_with("too few"));
        let said = sentence("kernel", &found, false).unwrap();
        let begin = "CPU time against kernel, in the same round: kernel again no difference (1.000; 1.000 to 1.000), ";
        assert!(said.starts_with(begin) && said.contains("kernel-cache too few (0.5"), "{said}");
        assert_eq!(sentence("kernel", &[], true), None);
    }

    #[test]
    fn few_pairs_are_told_so() {
        assert!(note(5).is_some_and(|note| note.contains("6 is the least")));
        assert_eq!(note(6), None);
    }
}
