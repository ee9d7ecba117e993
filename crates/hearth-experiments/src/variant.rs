//! What a paper leaves open, answered in another way: what becomes of its claims then.

use crate::policies::{Names, Policies};
use crate::setup::{PolicyName, Setup};
use crate::{Experiment, Job, JudgeError, Judgement, Runner, Verdict, claims};
use hearth_machine::located::Fault;
use hearth_machine::{Frames, Machine};
use serde::{Deserialize, Serialize};

/// Another answer to something that the paper does not say.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// In a few words.
    pub name: String,
    /// Other values in every policy that claims name without values of their own: `decay=2s`.
    pub policies: Option<String>,
    /// How many times as late the programs of staggered workloads start.
    pub starts: Option<f64>,
    /// Which frame of memory a page gets.
    pub frames: Option<Frames>,
    /// When CPUs tick.
    pub ticks: Option<Ticks>,
    /// A program that runs beside those of every workload, and has no end: `daemons`.
    pub beside: Option<String>,
}

/// When the CPUs of a machine tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ticks {
    /// All at once.
    InStep,
    /// Each at times of its own, that follow from the seed.
    Apart,
}

/// A claim's verdict under a variant.
#[derive(Clone, Debug, Serialize)]
pub struct VariantResult {
    /// The variant's name.
    pub name: String,
    /// The verdict.
    pub verdict: Verdict,
}

impl Variant {
    /// What is wrong with it, and how to mend it.
    pub(crate) fn check(&self, baseline: &str) -> Result<(), (String, String)> {
        let Self { policies, starts, frames, ticks, beside, .. } = self;
        if policies.is_none() && starts.is_none() && frames.is_none() && ticks.is_none() && beside.is_none() {
            let mend = "add `policies`, `starts`, `frames`, `ticks` or `beside`";
            return Err((format!("{:?} varies nothing", self.name), mend.to_owned()));
        }
        if let Some(starts) = self.starts.filter(|starts| !hearth_workloads::LATER.contains(starts)) {
            let (least, most) = (hearth_workloads::LATER.start(), hearth_workloads::LATER.end());
            let what = format!("programs cannot start {starts} times as late");
            return Err((what, format!("give a number from {least} to {most}")));
        }
        if let Some(beside) = beside {
            hearth_workloads::endless(beside)
                .map_err(|error| ("what runs beside has no end".to_owned(), error.to_string()))?;
        }
        let varied = self.policy(baseline);
        Policies::load(&varied).map(|_| ()).map_err(|error| {
            (format!("{varied}: {error}"), "write values as `hearth compare` takes them".into())
        })
    }

    /// The machine under this variant.
    pub(crate) fn machine(&self, machine: Machine) -> Machine {
        Machine { frames: self.frames.unwrap_or(machine.frames), ..machine }
    }

    /// A job under this variant, of a set-up that is: see [`applied`](Self::applied).
    pub(crate) fn job(&self, mut job: Job) -> Job {
        job.options.ticks_in_step =
            self.ticks.map_or(job.options.ticks_in_step, |ticks| ticks == Ticks::InStep);
        job
    }

    /// A set-up under this variant.
    pub(crate) fn applied(&self, setup: &Setup) -> Setup {
        let policy = match &setup.policy {
            PolicyName::Named(name) => PolicyName::Named(self.policy(name)),
            constants @ PolicyName::Affinity { .. } => constants.clone(),
        };
        let workload = match self.starts {
            Some(starts) if hearth_workloads::is_staggered(&setup.workload) => {
                format!("{}:starts={starts}", setup.workload)
            }
            _ => setup.workload.clone(),
        };
        let workload = match &self.beside {
            Some(beside) if setup.setting.is_none() && setup.sampled.is_none() => {
                format!("{workload}+{beside}")
            }
            _ => workload,
        };
        Setup { policy, workload, ..setup.clone() }
    }

    /// A policy's name with the variant's values, if it comes without values of its own.
    fn policy(&self, name: &str) -> String {
        let Names { policy, .. } = Names::from(name);
        match &self.policies {
            Some(values) if !policy.contains(':') => name.replacen(policy, &format!("{policy}:{values}"), 1),
            _ => name.to_owned(),
        }
    }
}

/// As [`judge`](crate::judge), and then once more under each variant of the experiment. A claim of which a variant
/// turns the verdict is fragile.
///
/// # Errors
/// As [`judge`](crate::judge).
pub fn judge_with_variants(
    experiment: &Experiment,
    scale: f64,
    seeds: &[u64],
    runner: &Runner<'_>,
) -> Result<Judgement, JudgeError> {
    let mut judgement = claims::judge(experiment, scale, seeds, runner)?;
    for variant in &experiment.variants {
        let varied = claims::judge_varied(experiment, variant, scale, seeds, runner)?;
        judgement.failures.extend(varied.failures);
        for (claim, under) in judgement.claims.iter_mut().zip(varied.claims) {
            claim.add_variant(VariantResult { name: variant.name.clone(), verdict: under.verdict });
        }
    }
    Ok(judgement)
}

/// A fault of the first variant that is none.
pub(crate) fn check_all(variants: &[Variant], baseline: &str) -> Result<(), Fault> {
    for (at, variant) in variants.iter().enumerate() {
        variant.check(baseline).map_err(|(what, mend)| Fault::new(format!("variant[{at}]"), what, mend))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_into_policies_that_have_none_of_their_own() {
        let variant = Variant { policies: Some("decay=2s".into()), ..Variant::default() };
        for (name, varied) in [
            ("standard", "standard:decay=2s"),
            ("both+dash", "both:decay=2s+dash"),
            ("heavy:decay=1000s", "heavy:decay=1000s"),
        ] {
            assert_eq!(variant.policy(name), varied);
            assert!(Policies::load(&variant.policy(name)).is_ok(), "{varied}");
        }
    }

    #[test]
    fn only_staggered_workloads_start_later() {
        let variant = Variant { starts: Some(0.5), ..Variant::default() };
        for (workload, varied) in [("engineering", "engineering:starts=0.5"), ("oltp", "oltp")] {
            let setup = variant.applied(&Setup::new(workload, "unix"));
            assert_eq!(setup.workload, varied);
        }
    }

    #[test]
    fn what_runs_beside_is_a_part_of_every_workload() {
        let beside = Some("daemons".to_owned());
        let variant = Variant { beside, starts: Some(0.5), ..Variant::default() };
        for (workload, varied) in
            [("engineering", "engineering:starts=0.5+daemons"), ("oltp+matrix", "oltp+matrix+daemons")]
        {
            let setup = variant.applied(&Setup::new(workload, "unix"));
            assert_eq!(setup.workload, varied);
            assert!(hearth_workloads::mix(varied).is_ok());
        }
    }

    #[test]
    fn a_variant_that_is_none_is_refused() {
        let wrong = |variant: Variant| variant.check("unix").unwrap_err().0;
        assert!(wrong(Variant { name: "x".into(), ..Variant::default() }).contains("varies nothing"));
        for starts in [-1.0, f64::NAN, 1e9] {
            let variant = Variant { starts: Some(starts), ..Variant::default() };
            assert!(wrong(variant).contains("times as late"));
        }
        for (beside, wanted) in
            [("demons", "no program is called"), ("matrix", "comes to its end"), ("daemons:x=1", "daemons:")]
        {
            let variant = Variant { beside: Some(beside.into()), ..Variant::default() };
            assert!(variant.check("unix").unwrap_err().1.contains(wanted), "{beside}");
        }
        let policies = Some("dceay=2s".to_owned());
        assert!(wrong(Variant { policies, ..Variant::default() }).contains("dceay"));
    }
}
