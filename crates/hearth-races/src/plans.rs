//! Plans that follow nothing but chance, published while CPUs are in the middle of anything.

use crate::machine::Machine;
use hearth_abi::native::Board;
use hearth_policy::{Plan, Rows, Target};
use std::io::Error;

/// From one plan to the next, at most.
const LONGEST_PLAN_NS: u32 = 60_000_000;
const MOST_PARTS: u32 = 4;
const MOST_ROWS: u32 = 5;

/// Publishes plans to one scheduler.
pub(crate) struct Plans {
    board: Board,
    next_ns: u64,
}

impl Plans {
    pub(crate) fn new(machine: &Machine) -> Result<Self, Error> {
        Ok(Self { board: machine.scheduler().board()?, next_ns: 0 })
    }

    /// Publishes another plan, if it is time. It may end before the next one comes.
    pub(crate) fn go_on(&mut self, machine: &Machine) {
        let now_ns = machine.now_ns();
        if now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns + u64::from(machine.random(LONGEST_PLAN_NS));
        let until_ns = now_ns + u64::from(machine.random(2 * LONGEST_PLAN_NS));
        self.board.publish(&plan(machine), until_ns);
    }
}

/// Parts, rows, and homes and rows of some tasks. None is kept to a part: a CPU would have to idle beside it.
fn plan(machine: &Machine) -> Plan {
    let cpus: Vec<usize> = machine.online().iter().collect();
    let count = machine.random(MOST_PARTS) as usize;
    let mut parts = vec![Vec::new(); count];
    if count > 0 {
        cpus.iter().for_each(|&cpu| parts[machine.random(count as u32) as usize].push(cpu));
        parts.retain(|part| !part.is_empty());
    }
    let rows = Rows {
        count: machine.random(MOST_ROWS) as usize,
        length_ns: u64::from(5_000_000 + machine.random(60_000_000)),
    };
    let mut plan = Plan { parts, rows, ..Plan::default() };
    for task in machine.tasks().iter().filter(|_| machine.random(2) == 0) {
        let home = cpus[machine.random(cpus.len() as u32) as usize];
        let row =
            (rows.count > 0 && machine.random(4) > 0).then(|| machine.random(rows.count as u32) as usize);
        plan.tasks.insert(task.pid(), Target { row, ..Target::at_home(home) });
    }
    plan
}
