//! A page policy as TOML: the layout of `policies/pages/*.toml`.

use hearth_machine::located::{self, Fault, LocatedError};
use hearth_machine::units::{BytesPerSecond, Nanoseconds};
use serde::{Deserialize, Serialize};

use super::{Cost, Defrost, Freeze, Misses, PagePolicy, Quota, Rule};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    description: String,
    rule: RuleText,
    misses: Option<MissesText>,
    threshold: Option<u32>,
    /// `consecutive` only.
    select: Option<u32>,
    freeze: Option<FreezeText>,
    quota: Option<QuotaText>,
    cost: Option<CostText>,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum RuleText {
    Never,
    PostFacto,
    Consecutive,
    Competitive,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum MissesText {
    Tlb,
    Cache,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct FreezeText {
    #[serde(default)]
    on_move: bool,
    #[serde(default)]
    on_local: bool,
    defrost: Option<Nanoseconds>,
    #[serde(default)]
    together: bool,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct QuotaText {
    pages: Option<u64>,
    bandwidth: Option<BytesPerSecond>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct CostText {
    #[serde(rename = "move")]
    moving: Nanoseconds,
    saving: Nanoseconds,
    horizon: Nanoseconds,
}

/// Reads and checks a page policy.
pub(super) fn parse(text: &str, origin: &str) -> Result<PagePolicy, LocatedError> {
    let file: File = located::read(text, origin)?;
    let policy = file.into_policy().map_err(|fault| fault.locate(text, origin))?;
    policy.check().map_err(|fault| fault.locate(text, origin))?;
    Ok(policy)
}

impl File {
    fn into_policy(self) -> Result<PagePolicy, Fault> {
        Ok(PagePolicy {
            rule: self.rule()?,
            name: self.name,
            description: self.description,
            freeze: self.freeze.map_or(Ok(Freeze::NONE), FreezeText::read)?,
            quota: self.quota.map(QuotaText::read).transpose()?,
            cost: self.cost.map(|cost| Cost {
                move_ns: cost.moving.0,
                saving_ns: cost.saving.0,
                horizon_ns: cost.horizon.0,
            }),
        })
    }

    fn rule(&self) -> Result<Rule, Fault> {
        match self.rule {
            RuleText::Never | RuleText::PostFacto => {
                let given = [
                    ("misses", self.misses.is_some()),
                    ("threshold", self.threshold.is_some()),
                    ("select", self.select.is_some()),
                ];
                if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
                    let what = "under this rule no miss moves a page, so this key has no effect";
                    return Err(Fault::new(key, what, "remove it, or write another `rule`"));
                }
                Ok(if matches!(self.rule, RuleText::Never) { Rule::Never } else { Rule::PostFacto })
            }
            RuleText::Consecutive => {
                let (misses, threshold) = self.trigger()?;
                Ok(Rule::Consecutive { misses, threshold, select: self.select.unwrap_or(0) })
            }
            RuleText::Competitive if self.select.is_some() => {
                let what = "`select` belongs to the consecutive rule; a competition has counted already";
                Err(Fault::new("select", what, "remove it, or write `rule = \"consecutive\"`"))
            }
            RuleText::Competitive => {
                let (misses, threshold) = self.trigger()?;
                Ok(Rule::Competitive { misses, threshold })
            }
        }
    }

    fn trigger(&self) -> Result<(Misses, u32), Fault> {
        let missing = |key: &str, mend: &str| {
            Fault::new("rule", format!("this rule needs `{key}`"), format!("add for example `{mend}`"))
        };
        let misses = match self.misses {
            Some(MissesText::Tlb) => Misses::Tlb,
            Some(MissesText::Cache) => Misses::Cache,
            None => return Err(missing("misses", "misses = \"tlb\"")),
        };
        Ok((misses, self.threshold.ok_or_else(|| missing("threshold", "threshold = 4"))?))
    }
}

impl FreezeText {
    fn read(self) -> Result<Freeze, Fault> {
        let defrost = match (self.defrost, self.together) {
            (None, true) => {
                let what = "`together` says how pages are defrosted, and `defrost` is not given";
                return Err(Fault::new("freeze.together", what, "add for example `defrost = \"1 s\"`"));
            }
            (None, false) => Defrost::Never,
            (Some(period), false) => Defrost::Each(period.0),
            (Some(period), true) => Defrost::Together(period.0),
        };
        Ok(Freeze { on_move: self.on_move, on_local: self.on_local, defrost })
    }

    fn write(freeze: &Freeze) -> Option<Self> {
        let (defrost, together) = match freeze.defrost {
            Defrost::Never => (None, false),
            Defrost::Each(period_ns) => (Some(Nanoseconds(period_ns)), false),
            Defrost::Together(period_ns) => (Some(Nanoseconds(period_ns)), true),
        };
        let (on_move, on_local) = (freeze.on_move, freeze.on_local);
        (*freeze != Freeze::NONE).then_some(Self { on_move, on_local, defrost, together })
    }
}

impl QuotaText {
    fn read(self) -> Result<Quota, Fault> {
        match (self.pages, self.bandwidth) {
            (Some(pages), None) => Ok(Quota::Pages(pages)),
            (None, Some(bytes)) => Ok(Quota::Bytes(bytes.0)),
            (None, None) => {
                let what = "a quota needs `pages` or `bandwidth`";
                Err(Fault::new("quota", what, "add for example `bandwidth = \"64 MB/s\"`"))
            }
            (Some(_), Some(_)) => {
                let what = "`pages` and `bandwidth` are both given";
                Err(Fault::new("quota.pages", what, "keep one of them"))
            }
        }
    }

    fn write(quota: Quota) -> Self {
        match quota {
            Quota::Pages(pages) => Self { pages: Some(pages), bandwidth: None },
            Quota::Bytes(bytes) => Self { pages: None, bandwidth: Some(BytesPerSecond(bytes)) },
        }
    }
}

/// Writes a page policy so that [`parse`] gives it back.
pub(super) fn to_toml(policy: &PagePolicy) -> String {
    let text = |misses| match misses {
        Misses::Tlb => MissesText::Tlb,
        Misses::Cache => MissesText::Cache,
    };
    let (rule, misses, threshold, select) = match policy.rule {
        Rule::Never => (RuleText::Never, None, None, None),
        Rule::PostFacto => (RuleText::PostFacto, None, None, None),
        Rule::Consecutive { misses, threshold, select } => {
            (RuleText::Consecutive, Some(text(misses)), Some(threshold), (select > 0).then_some(select))
        }
        Rule::Competitive { misses, threshold } => {
            (RuleText::Competitive, Some(text(misses)), Some(threshold), None)
        }
    };
    let file = File {
        name: policy.name.clone(),
        description: policy.description.clone(),
        rule,
        misses,
        threshold,
        select,
        freeze: FreezeText::write(&policy.freeze),
        quota: policy.quota.map(QuotaText::write),
        cost: policy.cost.map(|cost| CostText {
            moving: Nanoseconds(cost.move_ns),
            saving: Nanoseconds(cost.saving_ns),
            horizon: Nanoseconds(cost.horizon_ns),
        }),
    };
    // A struct of strings and numbers always has a TOML form.
    toml::to_string(&file).unwrap_or_default()
}
