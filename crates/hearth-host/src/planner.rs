//! What every planner tells of itself, whoever carries out its plans.

use crate::service::Metric;
use serde::{Deserialize, Serialize};

/// A planner's account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Steps that led to a plan.
    pub steps: u64,
    /// Plans that had something new to do.
    #[serde(default)]
    pub published: u64,
    /// Steps that led to no plan: it failed its check, or what makes it failed.
    #[serde(default)]
    pub refused: u64,
    /// Seconds since the last step that led to a plan.
    pub age_s: Option<f64>,
    /// CPU time of all steps: the snapshot, the plan and its publication.
    #[serde(default)]
    pub cpu_s: f64,
}

impl Account {
    /// The same for Prometheus, under the planner's name.
    pub fn metrics(&self, planner: &str) -> Vec<Metric> {
        let of = |metric: Metric| Metric {
            values: metric
                .values
                .into_iter()
                .map(|(mut labels, number)| {
                    labels.insert(0, ("planner", planner.to_owned()));
                    (labels, number)
                })
                .collect(),
            ..metric
        };
        let mut metrics = vec![
            of(Metric::counter("planner_steps", "Steps of a planner that led to a plan", self.steps)),
            of(Metric::counters(
                "planner_plans",
                "Plans that had something new to do, and steps that led to none",
                "outcome",
                [("published", self.published), ("refused", self.refused)],
            )),
            of(Metric::seconds(
                "planner_cpu",
                "CPU time of a planner's steps, snapshots included",
                self.cpu_s,
            )),
        ];
        metrics.extend(self.age_s.map(|age_s| {
            let help = "Time since a planner's last step that led to a plan";
            of(Metric { is_counter: false, ..Metric::seconds("planner_age", help, age_s) })
        }));
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Number;

    #[test]
    fn planners_share_their_metrics_and_are_told_apart_by_a_label() {
        let masks = Account { steps: 3, published: 1, refused: 2, age_s: Some(0.5), cpu_s: 0.25 };
        let pages = Account { steps: 7, ..Account::default() };
        let metrics = Metric::families([masks.metrics("masks"), pages.metrics("pages")].concat());
        let value = |name: &str, labels: &[(&'static str, &str)]| {
            let family: Vec<_> = metrics.iter().filter(|metric| metric.name == name).collect();
            assert_eq!(family.len(), 1, "{name}");
            let is_meant = |of: &[(&'static str, String)]| {
                of.iter().map(|(key, value)| (*key, value.as_str())).eq(labels.iter().copied())
            };
            family[0].values.iter().find(|(of, _)| is_meant(of)).map(|(_, number)| *number)
        };
        let (masks, pages) = (("planner", "masks"), ("planner", "pages"));
        for (name, labels, expected) in [
            ("planner_steps", vec![masks], Some(Number::Whole(3))),
            ("planner_steps", vec![pages], Some(Number::Whole(7))),
            ("planner_plans", vec![masks, ("outcome", "published")], Some(Number::Whole(1))),
            ("planner_plans", vec![masks, ("outcome", "refused")], Some(Number::Whole(2))),
            ("planner_age", vec![masks], Some(Number::Real(0.5))),
            ("planner_age", vec![pages], None),
            ("planner_cpu", vec![masks], Some(Number::Real(0.25))),
        ] {
            assert_eq!(value(name, &labels), expected, "{name} {labels:?}");
        }
    }
}
