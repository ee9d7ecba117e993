//! A policy as TOML: the layout of `policies/*.toml`.

use hearth_machine::located::{self, Fault, LocatedError};
use hearth_machine::units::Nanoseconds;
use serde::{Deserialize, Serialize};

use crate::{ClassNames, Credit, Discipline, Policy, UNIX_DECAY_NS};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    description: String,
    #[serde(with = "DisciplineText")]
    discipline: Discipline,
    quantum: Nanoseconds,
    /// Of disciplines with one run queue, as is the next.
    decay: Option<Nanoseconds>,
    saturation: Option<Nanoseconds>,
    #[serde(default, skip_serializing_if = "is_false")]
    attached: bool,
    /// `fair` only.
    #[serde(default, skip_serializing_if = "is_false")]
    steady: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    complex: bool,
    /// `complex` only.
    fade: Option<f64>,
    #[serde(default)]
    credit: CreditText,
    #[serde(default, skip_serializing_if = "IsolationText::is_empty")]
    isolation: IsolationText,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(remote = "Discipline")]
enum DisciplineText {
    #[serde(rename = "fixed")]
    Fixed,
    #[serde(rename = "fair")]
    Fair,
    #[serde(rename = "system-v")]
    SystemV,
    #[serde(rename = "4.3bsd")]
    Bsd,
    #[serde(rename = "kernel")]
    Kernel,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct CreditText {
    time: Nanoseconds,
    processor: Nanoseconds,
    llc: Nanoseconds,
    node: Nanoseconds,
    fragment: Nanoseconds,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct IsolationText {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cache_fair: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    best_effort: Vec<String>,
}

impl IsolationText {
    fn is_empty(&self) -> bool {
        self.cache_fair.is_empty() && self.best_effort.is_empty()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Reads and checks a policy.
pub(crate) fn parse(text: &str, origin: &str) -> Result<Policy, LocatedError> {
    let file: File = located::read(text, origin)?;
    let policy = file.into_policy().map_err(|fault| fault.locate(text, origin))?;
    policy.check().map_err(|fault| fault.locate(text, origin))?;
    Ok(policy)
}

/// The fastest fade: a credit is gone in a thousandth of its own length.
const MAX_FADE: f64 = 1000.0;

/// Turns a ratio into whole thousandths; the scheduler computes without floating point.
fn permille(fade: f64) -> Result<u32, Fault> {
    let thousandths = (fade * 1000.0).round();
    if !(1.0..=MAX_FADE * 1000.0).contains(&thousandths) || (thousandths / 1000.0 - fade).abs() > 1e-9 {
        let what = format!("a fade of {fade:?} is not between 0.001 and {MAX_FADE} in steps of 0.001");
        return Err(Fault::new("fade", what, "write for example 2.0: 20 ms of credit lost in 10 ms"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    Ok(thousandths as u32)
}

impl File {
    fn into_policy(self) -> Result<Policy, Fault> {
        let given = [("decay", self.decay), ("saturation", self.saturation)];
        let decays = given.into_iter().find_map(|(key, given)| given.map(|_| key));
        if let Some(key) = decays.filter(|_| !self.discipline.has_run_queue()) {
            let name = self.discipline.name();
            let what =
                format!("`{key}` belongs to the UNIX disciplines; CPU time is not forgotten under {name}");
            let mend = format!("remove `{key}`, or write `discipline = \"system-v\"`");
            return Err(Fault::new(key, what, mend));
        }
        let fade_permille = match (self.complex, self.fade) {
            (true, Some(fade)) => permille(fade)?,
            (true, None) => {
                let what = "`complex` needs `fade`, the credit lost per unit of time";
                return Err(Fault::new("complex", what, "add for example `fade = 2.0`"));
            }
            (false, Some(_)) => {
                let what = "`fade` has no effect without `complex`";
                return Err(Fault::new("fade", what, "add `complex = true`, or remove `fade`"));
            }
            (false, None) => 0,
        };
        Ok(Policy {
            name: self.name,
            description: self.description,
            discipline: self.discipline,
            quantum_ns: self.quantum.0,
            credit: Credit {
                time_ns: self.credit.time.0,
                processor_ns: self.credit.processor.0,
                llc_ns: self.credit.llc.0,
                node_ns: self.credit.node.0,
                fragment_ns: self.credit.fragment.0,
            },
            complex: self.complex,
            fade_permille,
            attached: self.attached,
            steady: self.steady,
            decay_ns: self.decay.map_or(UNIX_DECAY_NS, |decay| decay.0),
            saturation_ns: self.saturation.map(|saturation| saturation.0),
            isolation: ClassNames {
                cache_fair: self.isolation.cache_fair,
                best_effort: self.isolation.best_effort,
            },
        })
    }
}

/// Writes a policy so that [`parse`] gives it back.
pub(crate) fn to_toml(policy: &Policy) -> String {
    let decays = policy.discipline.has_run_queue();
    let file = File {
        name: policy.name.clone(),
        description: policy.description.clone(),
        discipline: policy.discipline,
        quantum: Nanoseconds(policy.quantum_ns),
        decay: decays.then_some(Nanoseconds(policy.decay_ns)),
        saturation: policy.saturation_ns.map(Nanoseconds),
        attached: policy.attached,
        steady: policy.steady,
        complex: policy.complex,
        fade: policy.complex.then_some(f64::from(policy.fade_permille) / 1000.0),
        credit: CreditText {
            time: Nanoseconds(policy.credit.time_ns),
            processor: Nanoseconds(policy.credit.processor_ns),
            llc: Nanoseconds(policy.credit.llc_ns),
            node: Nanoseconds(policy.credit.node_ns),
            fragment: Nanoseconds(policy.credit.fragment_ns),
        },
        isolation: IsolationText {
            cache_fair: policy.isolation.cache_fair.clone(),
            best_effort: policy.isolation.best_effort.clone(),
        },
    };
    // A struct of strings and numbers always has a TOML form.
    toml::to_string(&file).unwrap_or_default()
}
