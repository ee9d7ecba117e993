//! The database program of Fedorova, Seltzer and Smith (PACT 2007), section 5.2: transactions of TPC Benchmark C
//! against B-trees in memory, by one process that does not wait for any disk.
//!
//! Cardinalities, lengths of rows, kinds of transaction and what they draw are those of the benchmark's Standard
//! Specification, revision 5.11 (2010). The clauses are quoted from memory: the text could not be had. Trees are
//! walked, split and changed as they are; only the lengths of program text are synthetic (`store.rs`). There are no
//! terminals, no think times, no concurrency, and nothing is paged. All pages are given memory before the first
//! transaction.

mod database;
mod store;
mod transactions;

use crate::order_entry::{self, Draws, Records};
use crate::{Built, Description, Kind, Numbers, Parameter, scaled_unless_endless};
use database::Database;
use hearth_sim::memory::Memory;
use hearth_sim::program::Cpu;

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "tpcc",
    description: "order entry on B-trees in memory: TPC-C's tables and transactions, one process",
    kind: Kind::Synthetic,
    source: "TPC Benchmark C, revision 5.11, clauses 1 to 5; Fedorova, Seltzer, Smith 2007, section 5.2",
};

/// What may be given with its name.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "warehouses",
        description: "warehouses, some 70 MB each beside 8 MB of items",
        default: 1,
        range: 1..=10,
    },
    order_entry::transactions(5_000),
];

/// Sets the program up; see [`crate::build`]. Scale cuts the number of transactions.
pub(crate) fn build(memory: &Memory, scale: f64, seed: u64, numbers: &Numbers) -> Built {
    let mut draws = Draws::new(seed);
    let database = Database::new(memory, numbers.of("warehouses") as u64, &mut draws);
    order_entry::program(
        DESCRIPTION.name,
        database,
        draws,
        scaled_unless_endless(numbers.of("transactions"), scale),
    )
}

impl Records for Database {
    fn touch(&self, cpu: &mut Cpu<'_>) {
        self.touch(cpu);
    }

    fn transact(&self, cpu: &mut Cpu<'_>, draws: &mut Draws) {
        self.transact(cpu, draws);
    }

    fn check(&self) -> Result<(), String> {
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial;
    use database::ORDER_SLOTS;
    use hearth_sim::program::Application;
    use std::rc::Rc;

    /// Runs `work` on a database of so many warehouses, which must be consistent then.
    fn run(warehouses: u64, work: impl FnOnce(&Database, &mut hearth_sim::Cpu<'_>, &mut Draws) + 'static) {
        trial::run(|memory| {
            let mut draws = Draws::new(3);
            let database = Rc::new(Database::new(memory, warehouses, &mut draws));
            let shared = Rc::clone(&database);
            let mut application = Application::new("tpcc");
            application.task("tpcc", move |cpu| work(&shared, cpu, &mut draws));
            Built::new(application, move || database.check())
        });
    }

    #[test]
    fn transactions_leave_the_database_consistent() {
        for warehouses in [1, 2] {
            run(warehouses, |database, cpu, draws| (0..400).for_each(|_| database.transact(cpu, draws)));
        }
    }

    #[test]
    fn new_orders_take_the_places_of_the_oldest() {
        run(1, |database, cpu, draws| {
            let next = || database.contents.borrow().districts[0].next;
            while next() < 2 * ORDER_SLOTS {
                (0..4).for_each(|_| database.new_order(cpu, draws, 0));
                (0..5).for_each(|_| database.deliver(cpu, 0));
            }
            let Some(last) = database.contents.borrow().districts[0].next.checked_sub(1) else { return };
            assert!(database.order.read(cpu, &database.engine, database::order_slot(0, last)));
        });
    }

    #[test]
    #[should_panic = "was not paid"]
    fn money_from_nowhere_is_noticed() {
        run(1, |database, _, _| database.contents.borrow_mut().warehouses[0] += 1);
    }

    #[test]
    #[should_panic = "still to be delivered"]
    fn a_lost_order_is_noticed() {
        run(1, |database, cpu, _| database.new_order.tree.remove(cpu, &database.engine, 2_500));
    }

    #[test]
    #[should_panic = "is not there"]
    fn a_lost_line_is_noticed() {
        run(1, |database, cpu, _| {
            database.line.tree.remove(cpu, &database.engine, 77 * database::LINE_SLOTS)
        });
    }
}
