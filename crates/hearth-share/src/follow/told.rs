//! What a program was told over time.

use hearth_hints::page::Page;
use std::fmt;
use std::time::{Duration, Instant};

/// The numbers of a program, each with the time for which it held.
#[derive(Clone, Debug, Default)]
pub struct Told {
    begin: Option<Instant>,
    numbers: Vec<(Duration, u32)>,
    end: Duration,
    last: Option<Page>,
}

impl Told {
    /// Notes what a page says; 0 CPUs is nothing yet.
    pub fn note(&mut self, page: Page, now: Instant) {
        let at = now.duration_since(*self.begin.get_or_insert(now));
        if page.cpus > 0 && self.numbers.last().is_none_or(|(_, cpus)| *cpus != page.cpus) {
            self.numbers.push((at, page.cpus));
        }
        self.end = at;
        self.last = Some(page);
    }

    /// Why a program that could follow did not: `enum follow_state` of the preloaded library.
    fn hands_off(&self) -> Option<&'static str> {
        match self.last?.state {
            0 => None,
            1 => Some("it binds its threads to CPUs"),
            2 => Some("its number of threads was set not to change"),
            3 => Some("it keeps data in threads"),
            _ => Some("it said so"),
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.numbers.is_empty() {
            return write!(f, "asked for no number");
        }
        if let Some(reason) = self.hands_off() {
            return write!(f, "was left alone: {reason}");
        }
        let ends = self.numbers.iter().skip(1).map(|(at, _)| *at).chain([self.end]);
        for (place, ((at, cpus), end)) in self.numbers.iter().zip(ends).enumerate() {
            let comma = if place > 0 { ", " } else { "was told " };
            let plural = if *cpus == 1 { "" } else { "s" };
            write!(f, "{comma}{cpus} CPU{plural} for {:.1} s", end.saturating_sub(*at).as_secs_f64())?;
        }
        let followed: Vec<_> = self.last.iter().flat_map(Page::runtimes).collect();
        if followed.is_empty() { Ok(()) } else { write!(f, "; followed: {}", followed.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pages: &[(u64, Page)]) -> String {
        let begin = Instant::now();
        let mut told = Told::default();
        for (ms, page) in pages {
            told.note(*page, begin + Duration::from_millis(*ms));
        }
        told.to_string()
    }

    fn page(cpus: u32) -> Page {
        Page { cpus, runtime: 2, ..Page::default() }
    }

    #[test]
    fn numbers_are_told_with_their_times() {
        let seen = told(&[(0, page(0)), (100, page(4)), (1100, page(4)), (1600, page(1)), (2000, page(1))]);
        assert_eq!(seen, "was told 4 CPUs for 1.5 s, 1 CPU for 0.4 s; followed: gnu");
    }

    #[test]
    fn a_program_that_was_left_alone_says_why() {
        let seen = told(&[(0, Page { state: 1, ..page(2) })]);
        assert_eq!(seen, "was left alone: it binds its threads to CPUs");
        assert_eq!(told(&[]), "asked for no number");
    }
}
