//! A memory-resident database under transactions like those of TP1: stands for Oracle, which cannot
//! be had.
//!
//! The data structures are real: three tables with B-tree indices in shared memory, a history that
//! grows, latches, branch locks, a redo log with group commit. What is synthetic is the program text
//! around them: how long each operation's text is, how long it executes, and how much private memory
//! it uses (`text.rs`). These lengths are tuned to the paper's description of Oracle: dispatch intervals of
//! a few milliseconds that end about equally by waiting for the log, by system calls (a message to
//! the process that drives the benchmark) and, less often, because an index is latched; and some
//! 2,000 misses to load what such an interval uses.
//!
//! A server takes a transaction from the driver, changes the account and its teller, and says so; asked
//! to go on, it changes the branch, notes the transaction in the history, waits until the log is on
//! disk, cleans up, and answers.

pub(crate) mod btree;
mod log;
mod tables;
mod text;
pub(crate) mod words;

use crate::{Built, Description, Kind, scaled};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Memory};
use hearth_sim::program::{Application, Cpu};
use hearth_sim::sync::{Lock, Semaphore};
use log::Log;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use tables::{Index, PageCache, Table};
use text::{ANSWER, CLEAN_UP, COMMIT, DRIVE, INSERT_ROW, PREPARE, Process, REDO, REQUEST, Text};

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "oltp",
    description: "TP1-like transactions on B-trees in memory, 12 servers, a log writer, a driver",
    kind: Kind::Synthetic,
    source: "Torrellas, Tucker, Gupta 1995, tables I to IV (Oracle); Anon et al. 1985 (TP1)",
};

const SERVERS: usize = 12;
/// Transactions at scale 1: some 55 s on four CPUs, in the paper 65 (table V).
const TRANSACTIONS: usize = 14_500;
const BRANCHES: usize = 10;
const TELLERS: usize = 10 * BRANCHES;
const ACCOUNTS: usize = 10_000 * BRANCHES;
/// Largest amount of a transaction, either way.
const MAX_AMOUNT: u32 = 1_000;
/// Words of a redo record, and of the commit's.
const REDO_WORDS: usize = 24;
const COMMIT_WORDS: usize = 8;

/// A transaction as the driver hands it out.
#[derive(Clone, Copy, Default)]
struct Transaction {
    account: u64,
    teller: u64,
    branch: u64,
    amount: i64,
}

/// What all processes share.
#[derive(Clone)]
struct Database {
    accounts: Table,
    tellers: Table,
    branches: Table,
    branch_locks: Rc<[Lock]>,
    history: Array<Transaction>,
    history_index: Index,
    /// Rows of the history so far.
    history_end: Array<u64>,
    history_latch: Lock,
    log: Log,
    driver: Driver,
    transactions: usize,
}

/// Where the driver and the servers meet.
#[derive(Clone)]
struct Driver {
    requests: Array<Transaction>,
    /// For each server, whether it may go on.
    asked: Rc<[Semaphore]>,
    answers: Semaphore,
    /// Servers that have answered, and whether their transaction is done.
    answered: Rc<RefCell<VecDeque<(usize, bool)>>>,
    /// No more requests will come.
    over: Rc<Cell<bool>>,
}

/// The stream of random numbers that says where text lies.
const TEXT_STREAM: u64 = 1;

/// Sets the program up; see [`crate::build`]. Scale cuts the number of transactions.
pub fn build(memory: &Memory, scale: f64, seed: u64) -> Built {
    let database = Database::new(memory, scaled(TRANSACTIONS, scale));
    let text = Text::new(memory, &mut Pcg32::new(seed, TEXT_STREAM));
    let mut application = Application::new(DESCRIPTION.name);
    let process = || Process::new(memory, text.clone());
    let (shared, own) = (database.clone(), process());
    application.task("oltp-log", move |cpu| shared.log.write(cpu, &own));
    let (shared, own) = (database.clone(), process());
    application.task("oltp-driver", move |cpu| shared.drive(cpu, &own, Pcg32::seed_from_u64(seed)));
    for server in 0..SERVERS {
        let (shared, own) = (database.clone(), process());
        application.task(&format!("oltp-{server}"), move |cpu| shared.serve(cpu, &own, server));
    }
    Built::new(application, move || database.check())
}

impl Driver {
    fn new(memory: &Memory) -> Self {
        Self {
            requests: memory.array(SERVERS, Placement::FirstTouch),
            asked: (0..SERVERS).map(|_| Semaphore::new(0)).collect(),
            answers: Semaphore::new(0),
            answered: Rc::default(),
            over: Rc::default(),
        }
    }

    /// The next transaction of a server, or `None` if there will be no more.
    fn take(&self, cpu: &mut Cpu<'_>, server: usize) -> Option<Transaction> {
        self.asked[server].wait(cpu);
        (!self.over.get()).then(|| self.requests.get(cpu, server))
    }

    fn answer(&self, cpu: &mut Cpu<'_>, server: usize, done: bool) {
        self.answered.borrow_mut().push_back((server, done));
        self.answers.post(cpu);
    }
}

/// An account drawn at random, a teller of its branch, and an amount.
fn draw(random: &mut Pcg32) -> Transaction {
    let account = random.next_u32() as usize % ACCOUNTS;
    let branch = account / (ACCOUNTS / BRANCHES);
    let teller = branch * (TELLERS / BRANCHES) + random.next_u32() as usize % (TELLERS / BRANCHES);
    let amount = i64::from(random.next_u32() % (2 * MAX_AMOUNT + 1)) - i64::from(MAX_AMOUNT);
    Transaction { account: account as u64, teller: teller as u64, branch: branch as u64, amount }
}

impl Database {
    fn new(memory: &Memory, transactions: usize) -> Self {
        let cache = PageCache::new(memory);
        Self {
            accounts: Table::new(memory, &cache, ACCOUNTS),
            tellers: Table::new(memory, &cache, TELLERS),
            branches: Table::new(memory, &cache, BRANCHES),
            branch_locks: (0..BRANCHES).map(|_| Lock::new(memory)).collect(),
            history: memory.array(transactions, Placement::FirstTouch),
            history_index: Index::new(memory, &cache, transactions),
            history_end: memory.array(1, Placement::FirstTouch),
            history_latch: Lock::new(memory),
            log: Log::new(memory, SERVERS),
            driver: Driver::new(memory),
            transactions,
        }
    }

    /// The driver: keeps every server busy until all transactions are done, then ends everything.
    fn drive(&self, cpu: &mut Cpu<'_>, process: &Process, mut random: Pcg32) {
        let mut left = self.transactions;
        let first = SERVERS.min(left);
        (0..first).for_each(|server| self.hand_out(cpu, process, server, &mut random));
        let mut to_hand_out = left - first;
        while left > 0 {
            self.driver.answers.wait(cpu);
            let answered = self.driver.answered.borrow_mut().pop_front();
            let Some((server, done)) = answered else { continue };
            left -= usize::from(done);
            if !done {
                process.run(cpu, DRIVE);
                self.driver.asked[server].post(cpu);
            } else if to_hand_out > 0 {
                to_hand_out -= 1;
                self.hand_out(cpu, process, server, &mut random);
            }
        }
        self.driver.over.set(true);
        (0..SERVERS).for_each(|server| self.driver.asked[server].post(cpu));
        self.log.close(cpu);
    }

    fn hand_out(&self, cpu: &mut Cpu<'_>, process: &Process, server: usize, random: &mut Pcg32) {
        process.run(cpu, DRIVE);
        self.driver.requests.set(cpu, server, draw(random));
        self.driver.asked[server].post(cpu);
    }

    /// A server.
    fn serve(&self, cpu: &mut Cpu<'_>, process: &Process, server: usize) {
        while let Some(transaction) = self.driver.take(cpu, server) {
            self.change(cpu, process, transaction);
            process.run(cpu, ANSWER);
            self.driver.answer(cpu, server, false);
            self.driver.asked[server].wait(cpu);
            self.finish(cpu, process, server, transaction);
            process.run(cpu, CLEAN_UP);
            process.run(cpu, ANSWER);
            self.driver.answer(cpu, server, true);
        }
    }

    /// The first half of a transaction.
    fn change(&self, cpu: &mut Cpu<'_>, process: &Process, transaction: Transaction) {
        process.run(cpu, REQUEST);
        process.run(cpu, PREPARE);
        self.accounts.add(cpu, process, transaction.account, transaction.amount);
        self.redo(cpu, process, transaction.account);
        self.tellers.add(cpu, process, transaction.teller, transaction.amount);
        self.redo(cpu, process, transaction.teller);
    }

    /// The second half, up to the commit. The branch is locked until the commit record is in the log.
    fn finish(&self, cpu: &mut Cpu<'_>, process: &Process, server: usize, transaction: Transaction) {
        process.run(cpu, REQUEST);
        let branch = transaction.branch;
        let lock = &self.branch_locks[branch as usize];
        lock.acquire(cpu);
        self.branches.add(cpu, process, branch, transaction.amount);
        self.redo(cpu, process, branch);
        self.note(cpu, process, transaction);
        process.run(cpu, COMMIT);
        self.log.commit(cpu, server, &[branch; COMMIT_WORDS], |cpu| lock.release(cpu));
    }

    fn redo(&self, cpu: &mut Cpu<'_>, process: &Process, key: u64) {
        process.run(cpu, REDO);
        self.log.append(cpu, &[key; REDO_WORDS]);
    }

    /// Puts a row into the history.
    fn note(&self, cpu: &mut Cpu<'_>, process: &Process, transaction: Transaction) {
        process.run(cpu, INSERT_ROW);
        self.history_latch.acquire(cpu);
        let at = self.history_end.get(cpu, 0);
        self.history_end.set(cpu, 0, at + 1);
        self.history_latch.release(cpu);
        self.history.set(cpu, at as usize, transaction);
        // By account, and within an account by time.
        let key = transaction.account << 32 | at;
        self.history_index.insert(cpu, process, key, at);
        self.redo(cpu, process, at);
    }

    /// All trees are in order, and all sums of money are the same.
    fn check(&self) -> Result<(), String> {
        let noted = self.history_index.check().map_err(|error| format!("oltp: history: {error}"))?;
        if noted.len() != self.transactions {
            return Err(format!(
                "oltp: {} of {} transactions are in the history",
                noted.len(),
                self.transactions
            ));
        }
        let amount = |&(_, at): &(u64, u64)| self.history.peek(at as usize).amount;
        let wanted: i64 = noted.iter().map(amount).sum();
        for (name, table) in
            [("accounts", &self.accounts), ("tellers", &self.tellers), ("branches", &self.branches)]
        {
            let sum = table.sum().map_err(|error| format!("oltp: {name}: {error}"))?;
            if sum != wanted {
                return Err(format!("oltp: the history adds up to {wanted}, the {name} to {sum}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_names_a_teller_and_an_account_of_its_branch() {
        let mut random = Pcg32::seed_from_u64(1);
        for _ in 0..1000 {
            let drawn = draw(&mut random);
            assert_eq!(drawn.account / 10_000, drawn.branch);
            assert_eq!(drawn.teller / 10, drawn.branch);
            assert!(drawn.amount.unsigned_abs() <= u64::from(MAX_AMOUNT));
        }
    }
}
