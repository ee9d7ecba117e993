//! A trial's result for people.

use super::pages::Pages;
use super::{Comparison, Trial};
use hearth_report::pairs::{Verdict, least_pairs};

pub(super) fn text(trial: &Trial) -> String {
    let Some(found) = &trial.comparison else { return "No round was finished\n".into() };
    let unit = spaced(trial.unit);
    let partial = if trial.rounds.len() < trial.rounds_asked as usize {
        format!(" of {}: partial", trial.rounds_asked)
    } else {
        String::new()
    };
    let interval = found.difference.interval.map_or_else(
        || "no interval: too few rounds".to_owned(),
        |(low, high)| format!("95 % interval {} to {}", change(low), change(high)),
    );
    format!(
        "{} rounds{partial}\n\
         kernel's own scheduler  median {:.4}{unit}\n\
         {}  median {:.4}{unit}\n\
         Hearth against the kernel's: {} ({interval})\n\
         p = {:.4} ({})\n\
         {}\n{}{}\n",
        trial.rounds.len(),
        found.kernel_median,
        hearth(trial),
        found.hearth_median,
        change(found.difference.ratio),
        found.difference.p,
        trial.test,
        verdict(found),
        trial.pages.as_ref().map(Pages::text).unwrap_or_default(),
        state(trial),
    )
}

/// What is compared with the kernel's own scheduler.
fn hearth(trial: &Trial) -> String {
    let pages = trial.pages.as_ref().map(Pages::policy);
    match (&trial.policy, pages) {
        (Some(policy), Some(pages)) => format!("Hearth ({policy}, pages {pages})"),
        (Some(policy), None) => format!("Hearth ({policy})"),
        (None, _) => format!("the same with Hearth's pages ({})", pages.unwrap_or_default()),
    }
}

/// A unit after a number.
pub(super) fn spaced(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(" {unit}") }
}

/// A ratio as a change in percent.
fn change(ratio: f64) -> String {
    format!("{:+.2} %", (ratio - 1.0) * 100.0)
}

fn verdict(found: &Comparison) -> String {
    match found.difference.verdict {
        Verdict::Better => "Hearth is better".into(),
        Verdict::Worse => "Hearth is worse".into(),
        Verdict::NoDifference => "No difference could be shown".into(),
        Verdict::TooFew => format!("So few rounds cannot show a difference; {} is the least", least_pairs()),
    }
}

fn state(trial: &Trial) -> &'static str {
    match (trial.kept, &trial.policy) {
        (true, Some(_)) => "Hearth schedules this machine; hearth stop ends it",
        (true, None) => "Hearth moves the pages of this machine; hearth stop ends it",
        (false, _) => "The kernel's own scheduler has the machine",
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pair;
    use super::super::pages::Round;
    use super::*;
    use hearth_report::pairs::TEST;

    fn trial(ratio: f64, count: usize) -> Trial {
        let pairs = vec![Pair { kernel: 2.0, hearth: 2.0 * ratio }; count];
        let comparison = Comparison::of(&pairs, false);
        Trial {
            policy: Some("fair".into()),
            unit: "s",
            higher_is_better: false,
            rounds_asked: 8,
            rounds: pairs.into_iter().map(|pair| Round { pair, pages: None }).collect(),
            pages: None,
            test: TEST,
            comparison,
            kept: false,
        }
    }

    #[test]
    fn the_result_reads_as_sentences() {
        let better = text(&trial(0.9, 8));
        for part in
            ["8 rounds\n", "median 2.0000 s", "-10.00 %", "p = 0.0078", "Hearth is better", "kernel's own"]
        {
            assert!(better.contains(part), "{part} in {better}");
        }
        assert!(text(&trial(1.0, 8)).contains("No difference could be shown"));
        let partial = text(&trial(0.9, 3));
        assert!(partial.contains("3 rounds of 8: partial") && partial.contains("cannot show"), "{partial}");
        assert!(text(&trial(0.9, 0)).contains("No round"));
    }
}
