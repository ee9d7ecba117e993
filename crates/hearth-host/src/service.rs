//! The seam between a daemon and what works beside its scheduler, such as moving pages.
//!
//! A daemon begins its services, passes on what they tell, and ends them. It knows no more of them.

use crate::Error;
use crate::journal::Journal;
use crate::times::Times;
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Where a service is to work.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Takes what is changed on the machine.
    pub journal: Arc<Mutex<Journal>>,
    /// The folder of the cgroup whose processes alone are Hearth's.
    pub only: Option<PathBuf>,
    /// Whether Hearth schedules, or the kernel's own scheduler does.
    pub has_scheduler: bool,
    /// What all tasks have used, where the scheduler is planned for.
    pub times: Times,
}

/// Something that can work beside a scheduler.
pub trait Service: fmt::Debug + Send {
    /// Its word in the daemon's status and requests.
    fn name(&self) -> &'static str;

    /// Begins to work, on threads of its own; nothing if this machine has no use for it.
    ///
    /// # Errors
    /// What this machine cannot do, or what the system refuses.
    fn start(&self, setting: &Setting) -> Result<Option<Box<dyn Running>>, Error>;
}

/// A service at work. Dropping it ends it.
pub trait Running: Send {
    /// What it does, in all.
    fn status(&self) -> Value;

    /// What it knows of a process; null if it knows nothing.
    fn process(&self, pid: i32) -> Value;

    /// The same as [`Self::status`], for Prometheus.
    fn metrics(&self) -> Vec<Metric>;

    /// Ends it; what it did, in all.
    fn finish(self: Box<Self>) -> Value;
}

/// A number that Prometheus may ask for, or one for each of several labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name without prefix, unit and `_total`.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub help: &'static str,
    /// Whether it only ever grows.
    pub is_counter: bool,
    /// Its unit, if it is no count.
    pub unit: Option<Unit>,
    /// Labels and the number.
    pub values: Vec<(Labels, Number)>,
}

/// Keys and values.
pub type Labels = Vec<(&'static str, String)>;

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Time.
    Seconds,
    /// Parts of one.
    Ratios,
}

/// A metric's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A count.
    Whole(u64),
    /// Anything else.
    Real(f64),
}

impl Metric {
    /// A count that only grows.
    pub fn counter(name: &'static str, help: &'static str, count: u64) -> Self {
        let values = vec![(Labels::new(), Number::Whole(count))];
        Self { name, help, is_counter: true, unit: None, values }
    }

    /// Counts that only grow, one for each value of a label.
    pub fn counters(
        name: &'static str,
        help: &'static str,
        label: &'static str,
        counts: impl IntoIterator<Item = (&'static str, u64)>,
    ) -> Self {
        let value = |(of, count): (&str, u64)| (vec![(label, of.to_owned())], Number::Whole(count));
        let values = counts.into_iter().map(value).collect();
        Self { name, help, is_counter: true, unit: None, values }
    }

    /// A count that goes up and down.
    pub fn gauge(name: &'static str, help: &'static str, count: u64) -> Self {
        Self { is_counter: false, ..Self::counter(name, help, count) }
    }

    /// Time that only grows, in seconds.
    pub fn seconds(name: &'static str, help: &'static str, time_s: f64) -> Self {
        Self { unit: Some(Unit::Seconds), ..Self::real(name, help, true, time_s) }
    }

    /// A part of something: 0 to 1, or more where the part can be greater than the whole.
    pub fn ratio(name: &'static str, help: &'static str, ratio: f64) -> Self {
        Self { unit: Some(Unit::Ratios), ..Self::real(name, help, false, ratio) }
    }

    /// Joins metrics of one name, which several have told, into one family, as the exposition format has it.
    pub fn families(metrics: Vec<Metric>) -> Vec<Metric> {
        let mut families: Vec<Metric> = Vec::new();
        for metric in metrics {
            match families.iter_mut().find(|family| family.name == metric.name) {
                Some(family) => family.values.extend(metric.values),
                None => families.push(metric),
            }
        }
        families
    }

    fn real(name: &'static str, help: &'static str, is_counter: bool, value: f64) -> Self {
        Self { name, help, is_counter, unit: None, values: vec![(Labels::new(), Number::Real(value))] }
    }
}
