//! Stands for SPEC JBB2000, one of the database programs of Fedorova, Seltzer and Smith (PACT 2007), section 5.2: a
//! wholesale company in memory, as objects of Java.
//!
//! "SPECjbb2000, A Java Business Benchmark" (spec.org, white paper) says: loosely TPC-C's schema and operations,
//! with classes in the place of tables and objects in that of rows, held by binary trees, all in memory, one
//! terminal to a warehouse. By the white paper of its successor, SPECjbb2005, "closely based on" it, a warehouse has
//! roughly 25 MB of data. How many items there are and how often each kind is drawn is recalled from the
//! benchmark's documents; the other numbers are chosen so that a warehouse has 25 MB.
//!
//! Trees, lists of orders and the nursery with its collection are real. Synthetic are the lengths of compiled text
//! and the cycles around references (`company.rs`). Here one thread serves all warehouses in turn, as in the paper. All
//! pages but the nursery's are given memory before the first transaction. Customers are found by their numbers only.

mod company;
mod heap;
mod map;

use crate::order_entry::{self, Draws, Records};
use crate::{Built, Description, Kind, Numbers, Parameter, scaled_unless_endless};
use company::Company;
use hearth_sim::memory::Memory;
use hearth_sim::program::Cpu;
use std::cell::RefCell;

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "jbb",
    description: "order entry on objects in memory, with a nursery: stands for SPEC JBB2000",
    kind: Kind::Synthetic,
    source: "SPECjbb2000 white paper; Fedorova, Seltzer, Smith 2007, section 5.2",
};

/// What may be given with its name.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "warehouses", description: "warehouses, some 25 MB each", default: 1, range: 1..=8 },
    order_entry::transactions(20_000),
];

/// Sets the program up; see [`crate::build`]. Scale cuts the number of transactions.
pub(crate) fn build(memory: &Memory, scale: f64, seed: u64, numbers: &Numbers) -> Built {
    let mut draws = Draws::new(seed);
    let company = Company::new(memory, numbers.of("warehouses") as u64, seed, &mut draws);
    order_entry::program(
        DESCRIPTION.name,
        RefCell::new(company),
        draws,
        scaled_unless_endless(numbers.of("transactions"), scale),
    )
}

impl Records for RefCell<Company> {
    fn touch(&self, cpu: &mut Cpu<'_>) {
        self.borrow().touch(cpu);
    }

    fn transact(&self, cpu: &mut Cpu<'_>, draws: &mut Draws) {
        self.borrow_mut().transact(cpu, draws);
    }

    fn check(&self) -> Result<(), String> {
        self.borrow().check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial;

    fn run(given: &str) {
        let numbers = Numbers::read("jbb", PARAMETERS, given).unwrap();
        trial::run(|memory| build(memory, 1.0, 5, &numbers));
    }

    #[test]
    fn transactions_leave_the_company_consistent() {
        // Two thousand fill the nursery four times.
        run("warehouses=1,transactions=2000");
        run("warehouses=2,transactions=300");
    }
}
