//! Who schedules the guest.

use crate::Files;
use hearth_policy::Policy;

/// The kernel's own scheduler, without and with what it knows of caches, Hearth under a policy, or any other.
#[derive(Clone, Debug, PartialEq)]
pub enum Scheduler {
    /// The kernel's own.
    Kernel,
    /// The kernel's own with its cache-aware scheduling (`SCHED_CACHE`), which gathers the threads of
    /// a process in one last-level cache.
    KernelCache,
    /// Hearth, as `hearth start` starts it.
    Hearth(Box<Policy>),
    /// Any other that a program of this host loads.
    Other(Other),
}

/// A scheduler of sched_ext that a command loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// The command as it was given, which is the scheduler's name.
    pub name: String,
    /// Its words, the first of which is the program's place in the guest.
    pub command: Vec<String>,
    /// What it needs.
    pub files: Files,
}

/// What an argument names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// One of the kernel's, or a command that loads one.
    Own(&'a str),
    /// A policy, by preset or file.
    Policy(&'a str),
}

impl Scheduler {
    /// The names of those that are the kernel's.
    pub const OWN: [&'static str; 2] = ["kernel", "kernel-cache"];
    /// What stands before a policy.
    pub const PREFIX: &'static str = "hearth:";

    /// One of the kernel's, by its name.
    pub fn own(name: &str) -> Option<Self> {
        match name {
            "kernel" => Some(Self::Kernel),
            "kernel-cache" => Some(Self::KernelCache),
            _ => None,
        }
    }

    /// As it is named on the command line.
    pub fn name(&self) -> String {
        match self {
            Self::Kernel => "kernel".into(),
            Self::KernelCache => "kernel-cache".into(),
            Self::Hearth(policy) => format!("{}{}", Self::PREFIX, policy.name),
            Self::Other(other) => other.name.clone(),
        }
    }

    /// Its policy as a file; nothing if it is not Hearth. With other numbers, as in `fair:quantum=30ms`, it
    /// has the preset's name there, for these are no part of a name in a file.
    pub(crate) fn policy_text(&self) -> String {
        let Self::Hearth(policy) = self else { return String::new() };
        let preset = policy.name.split(':').next().unwrap_or_default();
        Policy { name: preset.into(), ..(**policy).clone() }.to_toml()
    }

    /// In a sentence.
    pub fn description(&self) -> String {
        match self {
            Self::Kernel => "The kernel's own scheduler, cache-aware scheduling off".into(),
            Self::KernelCache => "The kernel's own scheduler with its cache-aware scheduling".into(),
            Self::Hearth(policy) => policy.description.clone(),
            Self::Other(other) => format!("The scheduler that the command `{}` loads", other.name),
        }
    }
}

impl<'a> From<&'a str> for Named<'a> {
    fn from(text: &'a str) -> Self {
        text.strip_prefix(Scheduler::PREFIX).map_or(Self::Own(text), Self::Policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_stands_behind_the_prefix() {
        assert_eq!(Named::from("kernel"), Named::Own("kernel"));
        assert_eq!(Named::from("hearth:./mine.toml"), Named::Policy("./mine.toml"));
        assert_eq!(Named::from("hearth:"), Named::Policy(""));
    }

    #[test]
    fn a_scheduler_has_the_name_that_it_is_asked_for_by() {
        for name in Scheduler::OWN {
            assert_eq!(Scheduler::own(name).unwrap().name(), name);
        }
        assert_eq!(Scheduler::own("light"), None);
        let policy = Policy::load("light").unwrap();
        assert_eq!(Scheduler::Hearth(Box::new(policy)).name(), "hearth:light");
    }

    #[test]
    fn a_policy_with_other_numbers_is_a_file_that_can_be_read() {
        let long =
            "fair:quantum=30ms:credit.time=20ms:credit.processor=10ms:credit.llc=10ms:credit.node=40ms";
        let policy = Policy::load(long).unwrap();
        let scheduler = Scheduler::Hearth(Box::new(policy.clone()));
        assert_eq!(scheduler.name(), format!("hearth:{long}"));
        let read = Policy::parse(&scheduler.policy_text(), "policy.toml").unwrap();
        assert_eq!(Policy { name: policy.name.clone(), ..read }, policy);
        assert_eq!(Scheduler::Kernel.policy_text(), "");
    }
}
