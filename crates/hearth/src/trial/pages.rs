//! What became of pages in the halves of a trial that are Hearth's.

use super::Pair;
use crate::linux::pages::{moved, percent};
use hearth_migration::{Backend, PagesStatus, Tally};
use serde::Serialize;

/// A round: both measurements, and what pages did in Hearth's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Round {
    #[serde(flatten)]
    pub pair: Pair,
    /// Nothing if none were to follow their processes.
    pub pages: Option<Moved>,
}

/// What was moved, and what stayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Moved {
    #[serde(flatten)]
    pub tally: Tally,
    pub stayed_frozen: u64,
    pub stayed_cost: u64,
    pub stayed_quota: u64,
    /// How much of the command's memory was on the node where it ran, at the last look.
    pub local_share: Option<f64>,
}

impl From<&PagesStatus> for Moved {
    fn from(status: &PagesStatus) -> Self {
        Self {
            tally: status.tally.clone(),
            stayed_frozen: status.stayed_frozen,
            stayed_cost: status.stayed_cost,
            stayed_quota: status.stayed_quota,
            local_share: status.local_share,
        }
    }
}

/// Page migration in a trial: how, and what came of it in all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pages {
    policy: String,
    backend: Backend,
    notes: Vec<String>,
    /// Sums; of the local shares the mean.
    #[serde(flatten)]
    all: Moved,
}

impl Pages {
    /// Nothing came of it yet.
    pub fn new(status: &PagesStatus) -> Self {
        let (policy, notes) = (status.policy.clone(), status.notes.clone());
        Self { policy, backend: status.backend, notes, all: Moved::default() }
    }

    /// The page policy's name.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Sums the rounds up.
    pub fn sum(&mut self, rounds: &[Round]) {
        let mut all = Moved::default();
        let mut shares = Vec::new();
        for moved in rounds.iter().filter_map(|round| round.pages.as_ref()) {
            all.tally.include(&moved.tally);
            all.stayed_frozen += moved.stayed_frozen;
            all.stayed_cost += moved.stayed_cost;
            all.stayed_quota += moved.stayed_quota;
            shares.extend(moved.local_share);
        }
        all.local_share = (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64);
        self.all = all;
    }

    /// For people.
    pub fn text(&self) -> String {
        let Moved { tally, stayed_frozen, stayed_cost, stayed_quota, local_share } = &self.all;
        let mut text = format!("Pages under Hearth (page policy {}", self.policy);
        if self.backend != Backend::None {
            text += &format!(", sampled by {}", self.backend.text());
        }
        text += &format!("), all rounds together:\n{}", moved(tally));
        text +=
            &format!("  stayed: frozen {stayed_frozen}, not worth it {stayed_cost}, quota {stayed_quota}\n");
        text += &match local_share {
            Some(share) => format!("  when a run ended {} was local, on average\n", percent(*share)),
            None => "  the runs were too short, or their memory below 4 MiB, for a look at it\n".to_owned(),
        };
        self.notes.iter().for_each(|note| text += &format!("  {note}\n"));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(moved_pages: u64, local_share: Option<f64>) -> Round {
        let tally = Tally { moved_pages, moved_bytes: 4096 * moved_pages, ..Tally::default() };
        let pages = Moved { tally, local_share, stayed_cost: 2, ..Moved::default() };
        Round { pair: Pair { kernel: 2.0, hearth: 1.0 }, pages: Some(pages) }
    }

    fn pages() -> Pages {
        let (policy, notes) = ("linux".to_owned(), vec!["a note".to_owned()]);
        Pages { policy, backend: Backend::Damon, notes, all: Moved::default() }
    }

    #[test]
    fn rounds_are_summed_and_their_local_shares_averaged() {
        let mut pages = pages();
        pages.sum(&[round(256, Some(0.5)), round(512, Some(1.0)), round(0, None)]);
        assert_eq!((pages.all.tally.moved_bytes, pages.all.stayed_cost), (3 << 20, 6));
        let text = pages.text();
        for part in [
            "linux, sampled by DAMON",
            "moved 768 pages (3.0 MiB)",
            "not worth it 6",
            "75 % was local",
            "a note",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn runs_that_nobody_could_look_at_are_said_to_be_that() {
        let mut pages = pages();
        pages.sum(&[]);
        assert!(pages.text().contains("moved 0 pages") && pages.text().contains("too short"));
    }

    #[test]
    fn a_round_is_one_object_for_scripts() {
        let json = serde_json::to_value(round(1, Some(0.5))).unwrap();
        assert_eq!((&json["kernel"], &json["pages"]["moved_pages"]), (&2.0.into(), &1.into()));
        let without = Round { pair: Pair { kernel: 2.0, hearth: 1.0 }, pages: None };
        assert!(serde_json::to_value(without).unwrap()["pages"].is_null());
    }
}
