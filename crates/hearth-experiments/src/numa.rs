//! What the paper on clusters and memory measures (Chandra, Devine, Verghese, Gupta and Rosenblum,
//! ASPLOS 1994, section 4) of a run.

use crate::experiment::SwitchName;
use hearth_sim::RunResult;
use hearth_sim::measure::{ApplicationResult, Sample};

/// The program that an application runs, without the number of the copy.
pub(crate) fn program(name: &str) -> &str {
    name.split('#').next().unwrap_or(name)
}

/// The copies of an application in a run, with their places in it.
pub(crate) fn copies<'a>(
    applications: &'a [ApplicationResult],
    application: &'a str,
) -> impl Iterator<Item = (usize, &'a ApplicationResult)> {
    applications.iter().enumerate().filter(move |(_, result)| program(&result.name) == application)
}

/// Switches a second of an application's tasks (table 2): all copies together, over their response times.
pub(crate) fn switch_rate(run: &RunResult, application: &str, to: SwitchName) -> Option<f64> {
    let switches = |result: &ApplicationResult| match to {
        SwitchName::Context => result.tally.switches,
        SwitchName::Cpu => result.tally.cpu_moves,
        SwitchName::Node => result.tally.node_moves,
    };
    let all = || copies(&run.applications, application).map(|(_, result)| result);
    let count: u64 = all().map(switches).sum();
    let ns: u64 = all().map(|result| result.execution_ns).sum();
    (ns > 0).then(|| count as f64 / (ns as f64 / 1e9))
}

/// Response times over those of another run, application by application (table 3).
pub(crate) struct Response {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

pub(crate) fn response(run: &RunResult, base: &RunResult) -> Response {
    let pairs = run.awaited().zip(base.awaited());
    let ratios: Vec<f64> =
        pairs.map(|((_, is), (_, was))| is.execution_ns as f64 / was.execution_ns as f64).collect();
    let count = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let square: f64 = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
    Response { mean, deviation: (square / count).sqrt() }
}

/// Misses that local memory or a cache of the own node served.
pub(crate) fn local_percent(run: &RunResult) -> f64 {
    let counters = run.total.counters;
    100.0 * (1.0 - counters.remote_misses() as f64 / counters.misses() as f64)
}

/// CPU time of an application, all copies together.
pub(crate) fn cpu_ns(run: &RunResult, application: &str) -> Option<f64> {
    let ns: u64 = copies(&run.applications, application).map(|(_, result)| result.tally.cpu_ns).sum();
    (ns > 0).then_some(ns as f64)
}

/// The share of an application's pages on the node where it runs.
pub(crate) fn local_share(sample: &Sample, application: usize) -> Option<f64> {
    let pages = sample.pages.get(application)?;
    (pages.all > 0).then(|| f64::from(pages.local) / f64::from(pages.all))
}

/// How near the share must come to what it was, as figure 6 can be read.
const AS_BEFORE: f64 = 0.05;

/// Of the switches to another node after which the share of local pages dips: how many it comes back from to its
/// level before, until the next switch or the end, in percent. A switch without two samples until then is left out,
/// and one that leaves pages as near as they were, for there is nothing to come back from.
pub(crate) fn recovered_percent(
    applications: &[ApplicationResult],
    samples: &[Sample],
    application: &str,
) -> Option<f64> {
    let mut outcomes = Vec::new();
    for (index, result) in copies(applications, application) {
        let end_ns = result.start_ns + result.execution_ns;
        let switches = &result.node_switches_ns;
        for (at, &switch_ns) in switches.iter().enumerate() {
            let until_ns = switches.get(at + 1).copied().unwrap_or(end_ns);
            let shares = |from_ns: u64, to_ns: u64| {
                let inside = samples.iter().filter(move |sample| (from_ns..to_ns).contains(&sample.at_ns));
                inside.filter_map(move |sample| local_share(sample, index))
            };
            let Some(before) = shares(result.start_ns, switch_ns).next_back() else { continue };
            let after: Vec<bool> =
                shares(switch_ns, until_ns).map(|share| share + AS_BEFORE < before).collect();
            let dip = after.iter().position(|&low| low);
            if let (2.., Some(dip)) = (after.len(), dip) {
                outcomes.push(after[dip..].contains(&false));
            }
        }
    }
    let recovered = outcomes.iter().filter(|&&recovered| recovered).count();
    (!outcomes.is_empty()).then(|| 100.0 * recovered as f64 / outcomes.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_sim::measure::{PagesAt, Tally};

    fn job(node_switches_ns: Vec<u64>) -> ApplicationResult {
        let name = "ocean#1".into();
        ApplicationResult {
            name,
            start_ns: 0,
            execution_ns: 100,
            node_switches_ns,
            tally: Tally::default(),
            parallel: None,
            is_background: false,
        }
    }

    fn samples(local: &[u32]) -> Vec<Sample> {
        let sample = |(at, &local): (usize, &u32)| Sample {
            at_ns: at as u64 * 10,
            cpu_ns: vec![0],
            pages: vec![PagesAt { local, all: 100 }],
        };
        local.iter().enumerate().map(sample).collect()
    }

    #[test]
    fn a_switch_counts_as_recovered_if_the_share_comes_back_before_the_next() {
        let shares = samples(&[80, 80, 20, 50, 78, 10, 20, 30, 40, 50]);
        let recovered = |switches: &[u64]| recovered_percent(&[job(switches.to_vec())], &shares, "ocean");
        assert_eq!(recovered(&[15]), Some(100.0));
        assert_eq!(recovered(&[15, 45]), Some(50.0), "the second switch, at 78 %, is not made good");
        assert_eq!(recovered(&[15, 25]), Some(100.0), "too short a time is left out");
        assert_eq!(recovered(&[55]), None, "from 10 % on there is no dip to come back from");
        assert_eq!(recovered(&[]), None);
    }
}
