//! Programs whose size is given with their name: `custom:threads=8,size=1000`.

use crate::WorkloadError;
use std::ops::RangeInclusive;

/// A number that may be given with a program's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it is, with its unit.
    pub description: &'static str,
    /// What it is if not given.
    pub default: usize,
    /// What it may be.
    pub range: RangeInclusive<usize>,
}

/// The numbers of a program, each as given or by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numbers(Vec<(&'static str, usize)>);

impl Numbers {
    /// Reads `threads=8,size=1000`, or nothing.
    ///
    /// # Errors
    /// [`WorkloadError::BadParameter`]
    pub(crate) fn read(program: &str, parameters: &[Parameter], text: &str) -> Result<Self, WorkloadError> {
        let wrong = |what: String, mend: String| {
            Err(WorkloadError::BadParameter { program: program.into(), what, mend })
        };
        let mut numbers =
            Self(parameters.iter().map(|parameter| (parameter.name, parameter.default)).collect());
        for given in text.split(',').filter(|given| !given.is_empty()) {
            let (name, value) = given.split_once('=').unwrap_or((given, ""));
            let Some(at) = parameters.iter().position(|parameter| parameter.name == name.trim()) else {
                let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
                let mend = if names.is_empty() {
                    "leave it out".into()
                } else {
                    format!("it has {}", names.join(", "))
                };
                return wrong(format!("no parameter is called {:?}", name.trim()), mend);
            };
            let range = &parameters[at].range;
            match value.trim().parse() {
                Ok(value) if range.contains(&value) => numbers.0[at].1 = value,
                _ => {
                    let mend = format!("give a whole number from {} to {}", range.start(), range.end());
                    return wrong(format!("{name} cannot be {:?}", value.trim()), mend);
                }
            }
        }
        Ok(numbers)
    }

    /// One of them; 0 if the program has none of this name.
    pub(crate) fn of(&self, name: &str) -> usize {
        self.0.iter().find(|(known, _)| *known == name).map_or(0, |&(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: [Parameter; 2] = [
        Parameter { name: "threads", description: "", default: 8, range: 1..=100 },
        Parameter { name: "size", description: "", default: 1000, range: 1..=5000 },
    ];

    fn read(text: &str) -> Result<(usize, usize), String> {
        let numbers = Numbers::read("custom", &PARAMETERS, text).map_err(|error| error.to_string())?;
        Ok((numbers.of("threads"), numbers.of("size")))
    }

    #[test]
    fn what_is_not_given_is_as_by_default() {
        assert_eq!(read(""), Ok((8, 1000)));
        assert_eq!(read("size=20"), Ok((8, 20)));
        assert_eq!(read("size = 20, threads=100"), Ok((100, 20)));
    }

    #[test]
    fn an_error_names_what_there_is() {
        let error = |text: &str| read(text).unwrap_err();
        assert_eq!(error("rooms=3"), "custom: no parameter is called \"rooms\"; it has threads, size");
        let range = "custom: threads cannot be";
        for text in ["threads=0", "threads=101", "threads=-1", "threads", "threads=x"] {
            assert!(error(text).starts_with(range) && error(text).ends_with("from 1 to 100"), "{text}");
        }
    }
}
