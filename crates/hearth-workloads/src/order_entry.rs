//! Order-entry benchmarks: who drives them, and what that one draws (TPC Benchmark C, Standard Specification, revision
//! 5.11, clauses 2 and 4.3).

use crate::{Built, Parameter};
use hearth_sim::program::{Application, Cpu};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use std::cell::Cell;
use std::rc::Rc;

/// What transactions work on.
pub(crate) trait Records {
    /// Gives all of it memory.
    fn touch(&self, cpu: &mut Cpu<'_>);

    /// Does a transaction.
    fn transact(&self, cpu: &mut Cpu<'_>, draws: &mut Draws);

    /// Says, between transactions, what is inconsistent.
    fn check(&self) -> Result<(), String>;
}

/// How long such a program is.
pub(crate) const fn transactions(default: usize) -> Parameter {
    Parameter {
        name: "transactions",
        description: "transactions at scale 1; 0 for a program that never ends by itself",
        default,
        range: 0..=100_000_000,
    }
}

/// A process that does so many transactions, or goes on. Of one thread: what is timed are its transactions.
pub(crate) fn program(
    name: &'static str,
    records: impl Records + 'static,
    mut draws: Draws,
    wanted: Option<u64>,
) -> Built {
    let (records, done) = (Rc::new(records), Rc::new(Cell::new(0)));
    let (shared, counted) = (Rc::clone(&records), Rc::clone(&done));
    let mut application = Application::new(name);
    application.is_background = wanted.is_none();
    application.task(name, move |cpu| {
        shared.touch(cpu);
        cpu.mark_parallel(true);
        while wanted.is_none_or(|wanted| counted.get() < wanted) {
            shared.transact(cpu, &mut draws);
            counted.set(counted.get() + 1);
        }
        cpu.mark_parallel(false);
    });
    Built::new(application, move || match (done.get(), wanted) {
        // It was stopped within a transaction.
        (_, None) => Ok(()),
        (done, Some(wanted)) if done != wanted => {
            Err(format!("{name}: {done} transactions of {wanted} were done"))
        }
        _ => records.check().map_err(|error| format!("{name}: {error}")),
    })
}

/// The kinds of transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

/// Kinds with their weights.
pub(crate) type Mix = [(Kind, u32); 5];

/// Random numbers of one driver.
pub(crate) struct Draws {
    random: Pcg32,
    /// The constants of [`skewed`](Self::skewed): of customers, items and names.
    customer: u32,
    item: u32,
    name: u32,
}

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        let mut draws = Self { random: Pcg32::seed_from_u64(seed), customer: 0, item: 0, name: 0 };
        draws.customer = draws.below(1024);
        draws.item = draws.below(8192);
        draws.name = draws.below(256);
        draws
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        ((u64::from(self.random.next_u32()) * u64::from(end)) >> 32) as u32
    }

    /// A number from `first` to `last`.
    pub(crate) fn between(&mut self, first: u32, last: u32) -> u32 {
        first + self.below(last - first + 1)
    }

    /// True in so many cases of a hundred.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// A number below `end`, some much more often than others (clause 2.1.6); `a` is one less than a power of two.
    fn skewed(&mut self, a: u32, constant: u32, end: u32) -> u32 {
        ((self.below(a + 1) | self.below(end)) + constant) % end
    }

    /// A customer of a district that has so many.
    pub(crate) fn customer(&mut self, customers: u32) -> u32 {
        self.skewed(1023, self.customer, customers)
    }

    /// An item of so many.
    pub(crate) fn item(&mut self, items: u32) -> u32 {
        self.skewed(8191, self.item, items)
    }

    /// The number of a last name, of so many.
    pub(crate) fn name(&mut self, names: u32) -> u32 {
        self.skewed(255, self.name, names)
    }

    /// A kind by its weight.
    pub(crate) fn kind(&mut self, mix: &Mix) -> Kind {
        let mut drawn = self.below(mix.iter().map(|(_, weight)| weight).sum());
        for &(kind, weight) in mix {
            if drawn < weight {
                return kind;
            }
            drawn -= weight;
        }
        mix[0].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_drawn_is_in_range(seed: u64, end in 1..100_000u32) {
            let mut draws = Draws::new(seed);
            for _ in 0..50 {
                prop_assert!(draws.below(end) < end && draws.customer(end) < end);
                prop_assert!(draws.item(end) < end && draws.name(end) < end);
                prop_assert!((7..=7 + end).contains(&draws.between(7, 7 + end)));
            }
        }
    }

    #[test]
    fn kinds_come_by_weight_and_some_items_more_often_than_others() {
        let mut draws = Draws::new(1);
        let mix = [
            (Kind::NewOrder, 45),
            (Kind::Payment, 43),
            (Kind::OrderStatus, 4),
            (Kind::Delivery, 4),
            (Kind::StockLevel, 4),
        ];
        let deliveries = (0..10_000).filter(|_| draws.kind(&mix) == Kind::Delivery).count();
        assert!((300..500).contains(&deliveries), "{deliveries}");
        let mut counts = vec![0; 3000];
        (0..30_000).for_each(|_| counts[draws.customer(3000) as usize] += 1);
        counts.sort_unstable();
        let half: u32 = counts[1500..].iter().sum();
        assert!(half > 20_000, "{half}");
    }
}
