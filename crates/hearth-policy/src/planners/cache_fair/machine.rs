//! A small machine for the tests of this planner: on each CPU, tasks have time by weight and share.

use super::*;
use crate::snapshot::{Run, State};
use crate::{Controller, Plan, Planner};

pub const FAIR: u64 = 1;
pub const BEST_EFFORT: u64 = 2;
pub const NEITHER: u64 = 3;

/// Cycles of a CPU from one plan to the next, at 1 GHz.
pub const STEP_CYCLES: f64 = 1e9 * Controller::STEP.as_millis() as f64 / 1e3;

/// Of these, such as pass before a plan is followed.
const LATE_CYCLES: f64 = STEP_CYCLES / 10.0;

/// The longest run.
const SLICE_CYCLES: f64 = 30e6;

/// A task that always runs or waits.
#[derive(Clone, Debug)]
pub struct Program {
    pub group: u64,
    pub weight: u32,
    pub cpu: usize,
    pub ipc: f64,
    /// Its misses for each cycle, and those of its one co-runner.
    pub misses: (f64, f64),
    pub cycles: f64,
    pub instructions: f64,
}

pub fn program(group: u64, cpu: usize, ipc: f64) -> Program {
    Program { group, weight: 100, cpu, ipc, misses: (0.0, 0.0), cycles: 0.0, instructions: 0.0 }
}

/// Programs by thread id from 1, each kept to its CPU.
pub struct Machine {
    pub planner: CacheFair,
    pub programs: Vec<Program>,
    pub plan: Plan,
    pub steps: usize,
    last_plan: Plan,
}

impl Machine {
    pub fn new(planner: CacheFair, programs: Vec<Program>) -> Self {
        Self { planner, programs, plan: Plan::default(), steps: 0, last_plan: Plan::default() }
    }

    pub fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            let mut runs = Vec::new();
            self.pass(&self.last_plan.clone(), LATE_CYCLES, &mut runs);
            self.pass(&self.plan.clone(), STEP_CYCLES - LATE_CYCLES, &mut runs);
            self.steps += 1;
            let mut snapshot = self.snapshot();
            snapshot.runs = runs;
            let mut plan = Plan::default();
            self.planner.plan(&snapshot, &mut plan);
            assert_eq!(plan.check(&snapshot), Ok(()));
            self.last_plan = std::mem::replace(&mut self.plan, plan);
        }
    }

    /// Instructions of a program, and those that it would have completed with its nominal share.
    pub fn done(&self, tid: usize, ipc: f64) -> (f64, f64) {
        let program = &self.programs[tid - 1];
        let beside = self.programs.iter().filter(|other| other.cpu == program.cpu);
        let part = f64::from(program.weight) / beside.map(|other| f64::from(other.weight)).sum::<f64>();
        (program.instructions, part * self.steps as f64 * STEP_CYCLES * ipc)
    }

    pub fn share(&self, tid: i32) -> u32 {
        self.plan.tasks.get(&tid).map_or(1000, |target| target.share_permille)
    }

    fn pass(&mut self, plan: &Plan, cycles: f64, runs: &mut Vec<Run>) {
        let weight = |(place, program): (usize, &Program)| {
            let share = plan.tasks.get(&(place as i32 + 1)).map_or(1000, |target| target.share_permille);
            f64::from(program.weight * share)
        };
        let weights: Vec<f64> = self.programs.iter().enumerate().map(weight).collect();
        let sum = |cpu| {
            let here = self.programs.iter().zip(&weights).filter(|(program, _)| program.cpu == cpu);
            here.map(|(_, weight)| weight).sum::<f64>()
        };
        let sums: Vec<f64> = self.programs.iter().map(|program| sum(program.cpu)).collect();
        for (place, program) in self.programs.iter_mut().enumerate() {
            let cycles = cycles * weights[place] / sums[place];
            program.cycles += cycles;
            program.instructions += cycles * program.ipc;
            let count = (cycles / SLICE_CYCLES).ceil();
            runs.extend((0..count as usize).map(|_| program.run(place as i32 + 1, cycles / count)));
        }
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::new(self.steps as u64 * 100_000_000, [(0, 0, 0), (1, 0, 0)]);
        snapshot.classes = [(FAIR, Class::CacheFair), (BEST_EFFORT, Class::BestEffort)].into();
        for (tid, program) in (1..).zip(&self.programs) {
            let Program { group, weight, cpu, .. } = *program;
            let mask = snapshot.mask([cpu].into());
            let busy = snapshot.cpus[cpu].is_busy;
            let state = if busy { State::Waiting } else { State::Running };
            let ran_ns = program.cycles as u64;
            snapshot.add(Task { tid, group, weight, cpu, mask, state, ran_ns, ..Task::default() });
        }
        snapshot
    }
}

impl Program {
    fn run(&self, tid: i32, cycles: f64) -> Run {
        let (own, others) = self.misses;
        let misses = (own * cycles) as u64;
        let others_misses = (others * cycles) as u64;
        Run {
            tid,
            group: self.group,
            cpu: self.cpu,
            cycles: cycles as u64,
            instructions: (cycles * self.ipc) as u64,
            misses,
            transfers: misses,
            others_misses,
            others_transfers: others_misses,
            others: 1,
        }
    }
}
