//! A scheduling policy with a page policy beside it, as it is written and named: `both+dash`.

use hearth_policy::pages::PagePolicy;
use hearth_policy::{Policy, PolicyError};

/// What schedules, and what moves pages if anything does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policies {
    /// The scheduling policy.
    pub policy: Policy,
    /// When pages move; nothing if they stay where they were touched first.
    pub pages: Option<PagePolicy>,
}

impl From<Policy> for Policies {
    fn from(policy: Policy) -> Self {
        Self { policy, pages: None }
    }
}

impl Policies {
    /// The scheduling policy's part of a name, and the page policy's if there is one.
    pub fn split(name: &str) -> (&str, Option<&str>) {
        name.split_once('+').map_or((name, None), |(policy, pages)| (policy, Some(pages)))
    }

    /// Loads both by preset or file.
    ///
    /// # Errors
    /// As [`Policy::load`] and [`PagePolicy::load`].
    pub fn load(name: &str) -> Result<Self, PolicyError> {
        let (policy, pages) = Self::split(name);
        Ok(Self { policy: Policy::load(policy)?, pages: pages.map(PagePolicy::load).transpose()? })
    }

    /// Both names, joined.
    pub fn name(&self) -> String {
        match &self.pages {
            Some(pages) => format!("{}+{}", self.policy.name, pages.name),
            None => self.policy.name.clone(),
        }
    }

    /// Both descriptions, joined.
    pub fn description(&self) -> String {
        match &self.pages {
            Some(pages) => format!("{}. Pages: {}", self.policy.description, pages.description),
            None => self.policy.description.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_two_policies_comes_back_as_it_was_written() {
        for (name, moves) in [("both", false), ("both+dash", true)] {
            let policies = Policies::load(name).unwrap();
            assert_eq!((policies.name().as_str(), policies.pages.is_some()), (name, moves));
            assert_eq!(policies.description().contains(" Pages: "), moves);
        }
        assert!(Policies::load("both+no-such").is_err() && Policies::load("no-such+dash").is_err());
    }
}
