//! What tasks do, by chance.

use crate::machine::Machine;
use hearth_machine::CpuSet;
use hearth_scx::{Current, Pid};
use std::cell::Cell;

/// How often tasks do what: one in so many steps.
#[derive(Clone, Copy)]
pub(crate) struct Habits {
    /// No change of weights or classes if 0.
    change_classes: u32,
    change_masks: u32,
    sleep: u32,
    yield_: u32,
    /// To begin what may not be moved to another CPU; to end it.
    pin: u32,
    unpin: u32,
    /// None if 0.
    declare: u32,
}

/// Numbers that tasks declare.
const FRAGMENTS: u32 = 6;

impl Habits {
    /// From busy spinners to a crowd of sleepers.
    pub(crate) fn any(machine: &Machine, unequal: bool, fragments: bool) -> Self {
        let rare = |most| 1 << machine.random(most);
        let declare = if fragments { 16 * rare(8) } else { 0 };
        let (change_masks, sleep, yield_) = (8 * rare(8), 16 * rare(12), 32 * rare(8));
        let (pin, unpin) = (64 * rare(8), rare(8));
        if !unequal {
            return Self { change_classes: 0, change_masks, sleep, yield_, pin, unpin, declare };
        }
        // Rarely enough for a task to wait in peace.
        Self {
            change_classes: 1024 * rare(10),
            change_masks: change_masks * rare(14),
            sleep: sleep * rare(8),
            yield_: yield_ * rare(8),
            pin,
            unpin,
            declare,
        }
    }
}

/// What a CPU does again and again: interrupts, a switch if one is due, a step of its task.
pub(crate) fn turn(machine: &Machine, cpu: usize, habits: Habits, is_resting: &Cell<bool>) {
    machine.interrupts(cpu, is_resting.get());
    if machine.needs_resched(cpu) {
        machine.settle(cpu, false);
        machine.schedule(cpu, || {});
        return;
    }
    match machine.current(cpu) {
        Current::Higher if !is_resting.get() && !machine.is_offline(cpu) => {
            machine.spend_time();
            machine.settle(cpu, false);
            machine.wait();
        }
        Current::Task(_) if !is_resting.get() => {
            machine.settle(cpu, false);
            act(machine, cpu, habits);
            machine.wait();
        }
        _ => {
            machine.settle(cpu, true);
            machine.wait();
            machine.settle(cpu, false);
        }
    }
}

/// A task's next step.
fn act(machine: &Machine, cpu: usize, habits: Habits) {
    machine.spend_time();
    pin(machine, cpu, habits);
    if habits.change_classes > 0 && machine.random(habits.change_classes) == 0 {
        change_class(machine, cpu);
    } else if machine.random(habits.change_masks) == 0 {
        let task = some_task(machine);
        machine.set_mask(task, some_mask(machine));
    } else if machine.random(habits.sleep) == 0 {
        machine.sleep(cpu, u64::from(machine.random(8_000_000)));
    } else if machine.random(habits.yield_) == 0 {
        machine.yield_current(cpu);
    } else if habits.declare > 0 && machine.random(habits.declare) == 0 {
        declare(machine, cpu);
    }
}

/// The task on a CPU begins or ends something for which it has to stay there.
fn pin(machine: &Machine, cpu: usize, habits: Habits) {
    let Current::Task(pid) = machine.current(cpu) else { return };
    if !machine.task(pid).is_pinned() {
        if machine.random(habits.pin) == 0 {
            machine.disable_migration(cpu);
        }
    } else if machine.random(habits.unpin) == 0 {
        machine.enable_migration(cpu);
    }
}

/// The task on a CPU declares something, or nothing more, and may ask to be moved.
fn declare(machine: &Machine, cpu: usize) {
    let Current::Task(pid) = machine.current(cpu) else { return };
    machine.task(pid).sched.declared.set(machine.random(FRAGMENTS).into());
    if machine.random(2) == 0 {
        machine.yield_current(cpu);
    }
}

/// Tasks of any weight, most of them bound to one of few CPUs.
pub(crate) fn begin_unequal(machine: &Machine) {
    let crowded = 1 + machine.random(machine.cpus() as u32);
    for task in machine.tasks() {
        machine.set_weight(task.pid(), some_weight(machine));
        if machine.random(4) > 0 {
            let cpu = machine.random(crowded);
            machine.set_mask(task.pid(), CpuSet::one(cpu as usize));
            task.sched.cpu.set(cpu);
        }
    }
}

/// A task's weight or class changes, or a higher class takes a CPU.
fn change_class(machine: &Machine, cpu: usize) {
    let any_ms = |most| u64::from(1 + machine.random(most)) * 1_000_000;
    let task = some_task(machine);
    match machine.random(8) {
        0 => machine.visit_class(task, cpu, any_ms(9000)),
        1 => machine.hold_for(machine.random(machine.cpus() as u32) as usize, any_ms(100)),
        _ => machine.set_weight(task, some_weight(machine)),
    }
}

fn some_task(machine: &Machine) -> Pid {
    1 + machine.random(machine.tasks().len() as u32) as Pid
}

/// From 1 to 10,000, as many light ones as heavy ones.
fn some_weight(machine: &Machine) -> u32 {
    let decade = 10_u32.pow(machine.random(5));
    (decade * (1 + machine.random(9))).min(10_000)
}

/// One CPU, or a few neighbours.
fn some_mask(machine: &Machine) -> CpuSet {
    let cpus = machine.cpus() as u32;
    let length = if machine.random(3) == 0 { 1 + machine.random(4) } else { 1 };
    let first = machine.random(cpus);
    (first..first + length).map(|cpu| (cpu % cpus) as usize).collect()
}
