//! A process of a program: it does tasks until the program ends.

use super::queue::{State, Work};
use super::team::Team;
use super::{Invocation, Master};
use hearth_hardware::Address;
use hearth_machine::CpuSet;
use hearth_sim::memory::Array;
use hearth_sim::program::Cpu;
use hearth_sim::two_phase::spin;
use std::rc::Rc;

/// A process, as its tasks see it.
pub struct Process {
    team: Rc<Team>,
    number: usize,
}

impl Process {
    /// The master: starts the others, does its part, and ends the program.
    pub(super) fn first(team: &Rc<Team>, cpu: &mut Cpu<'_>, master: Master) {
        let process = Process { team: Rc::clone(team), number: 0 };
        team.add(cpu.task());
        for number in 1..team.invocation.processes {
            let other = Process { team: Rc::clone(team), number };
            let task = cpu.fork(&team.name(number), move |cpu| {
                other.begin(cpu);
                let team = &other.team;
                other.work(cpu, |_| team.is_over.get());
            });
            team.add(task);
        }
        process.begin(cpu);
        process.set_state(State::Busy);
        master(cpu, &process);
        team.end(cpu);
    }

    fn begin(&self, cpu: &mut Cpu<'_>) {
        let Invocation { attached, .. } = self.team.invocation;
        if attached {
            cpu.set_mask(cpu.task(), CpuSet::one(self.team.invocation.cpu_of(self.number)));
        }
        self.team.queues[self.number].touch(cpu);
    }

    fn set_state(&self, state: State) {
        self.team.queues[self.number].state.set(state);
    }

    /// How many processes the program was started with: into so many parts it cuts its work.
    pub fn processes(&self) -> usize {
        self.team.invocation.processes
    }

    /// The number of this process.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Has memory that nobody has touched lie near a process, if the program distributes its data.
    pub fn distribute(&self, cpu: &mut Cpu<'_>, address: Address, bytes: u64, process: usize) {
        let invocation = &self.team.invocation;
        if invocation.distributed {
            cpu.place(address, bytes, invocation.cpu_of(process));
        }
    }

    /// The same for a range of an array.
    pub fn distribute_part<T: Copy>(
        &self,
        cpu: &mut Cpu<'_>,
        array: &Array<T>,
        range: std::ops::Range<usize>,
        process: usize,
    ) {
        let bytes = (range.len() * size_of::<T>()) as u64;
        self.distribute(cpu, array.address(range.start), bytes, process);
    }

    /// Puts a task into the queue of a process, which does it unless another one has to.
    pub fn spawn(&self, cpu: &mut Cpu<'_>, home: usize, work: Work) {
        let team = &self.team;
        team.run_put(cpu);
        team.begin_task(cpu);
        team.queues[home].put(cpu, work);
        match team.queues[home].state.get() {
            State::Looking => {}
            State::Idle => team.wake_idle(cpu, Some(home)),
            State::Busy | State::Suspended => team.wake_idle(cpu, None),
        }
    }

    /// Has a task done for each process, which belongs in its queue; the master waits for all of them.
    pub fn on_each(&self, cpu: &mut Cpu<'_>, work: impl Fn(&mut Cpu<'_>, usize) + 'static) {
        let work = Rc::new(work);
        for part in 0..self.processes() {
            let work = Rc::clone(&work);
            self.spawn(cpu, part, Box::new(move |cpu, _| work(cpu, part)));
        }
        self.wait(cpu);
    }

    /// The master waits until all tasks are done, and does some of them.
    pub fn wait(&self, cpu: &mut Cpu<'_>) {
        let team = &self.team;
        self.set_state(State::Looking);
        self.work(cpu, |cpu| cpu.map_or_else(|| team.is_done(), |cpu| team.looks_done(cpu)));
        self.set_state(State::Busy);
    }

    /// Does tasks until `is_over`, which is asked with a CPU to look with, or without one.
    fn work(&self, cpu: &mut Cpu<'_>, is_over: impl Fn(Option<&mut Cpu<'_>>) -> bool) {
        let team = &self.team;
        while !is_over(Some(cpu)) {
            team.keep_to_allotment(cpu, self.number);
            let Some(work) = self.find(cpu) else {
                let queue = &team.queues[self.number];
                let came = spin(cpu, |cpu| is_over(Some(cpu)) || !queue.looks_empty(cpu));
                if !came {
                    team.block_idle(cpu, self.number, || is_over(None));
                }
                continue;
            };
            self.set_state(State::Busy);
            work(cpu, self);
            team.end_task(cpu);
            self.set_state(State::Looking);
        }
    }

    /// The oldest task of the own queue; or of the first queue after it whose owner does not take its own.
    fn find(&self, cpu: &mut Cpu<'_>) -> Option<Work> {
        let team = &self.team;
        team.run_find(cpu);
        if let Some(work) = team.queues[self.number].take(cpu) {
            return Some(work);
        }
        let patience_ns = team.invocation.patience_cycles.saturating_mul(cpu.cycle_ps()) / 1000;
        let others = (1..team.queues.len()).map(|step| (self.number + step) % team.queues.len());
        for queue in others.map(|other| &team.queues[other]) {
            if queue.looks_empty(cpu) {
                continue;
            }
            let is_left = queue.state.get() == State::Suspended;
            if (is_left || queue.has_waited(cpu.now_ns(), patience_ns))
                && let Some(work) = queue.take(cpu)
            {
                return Some(work);
            }
        }
        None
    }
}
