//! A parallel make: compiles C files, several at a time.
//!
//! `make` reads its file, looks for what is out of date, and starts a compilation whenever too few
//! are under way. Each compilation is a task of its own (`compiler.rs`), with the passes of that
//! time's compiler drivers: the preprocessor, which reads the source and its headers; the parser; the
//! optimizer; the code generator; the assembler, which writes the object. Passes hand their result on
//! in temporary files, which a daemon of the kernel takes to the disk.

mod compiler;
mod files;
mod text;
mod tree;

use crate::{Built, Description, Kind};
use compiler::{Compiler, Toolchain};
use files::Files;
use hearth_sim::memory::Memory;
use hearth_sim::program::{Application, Cpu};
use hearth_sim::sync::Semaphore;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use std::cell::Cell;
use std::rc::Rc;

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "pmake",
    description: "parallel make: 8 processes compile 24 C files of 460 lines on average",
    kind: Kind::Synthetic,
    source: "Torrellas, Tucker, Gupta 1995, tables I to IV",
};

/// The make of the paper about memory.
pub const DESCRIPTION_4: Description = Description {
    name: "pmake-4",
    description: "parallel make: 4 processes compile 17 C files of 770 lines on average",
    kind: Kind::Synthetic,
    source: "Chandra, Devine, Verghese, Gupta, Rosenblum 1994, table 1",
};

/// A size of the program.
struct Input {
    description: Description,
    /// Source files at scale 1, and compilations under way at most.
    files: usize,
    at_once: usize,
    /// Lines of a file on average; files differ from it by up to half.
    lines: usize,
}

const EIGHT: Input = Input { description: DESCRIPTION, files: 24, at_once: 8, lines: 460 };
const FOUR: Input = Input { description: DESCRIPTION_4, files: 17, at_once: 4, lines: 770 };

/// The shortest file.
const MIN_LINES: usize = 20;
/// Bytes of the make file, and cycles for each target until it is known to be out of date.
const MAKE_FILE_BYTES: u64 = 8 << 10;
const TARGET_CYCLES: u64 = 40_000;

/// The run's bookkeeping, for its check.
#[derive(Default)]
struct Done {
    files: Cell<usize>,
    under_way: Cell<usize>,
    most_under_way: Cell<usize>,
    /// The first wrong result.
    wrong: Cell<Option<&'static str>>,
}

impl Input {
    /// How many files of how many lines: fewer files, but enough to keep all processes busy; the
    /// rest of the scale makes them shorter.
    fn plan(&self, scale: f64, random: &mut Pcg32) -> Vec<usize> {
        let files = ((self.files as f64 * scale).round() as usize).clamp(self.at_once, self.files);
        let lines = self.lines as f64 * scale * self.files as f64 / files as f64;
        let share = |random: &mut Pcg32| 0.5 + f64::from(random.next_u32() % 1000) / 1000.0;
        (0..files).map(|_| ((lines * share(random)) as usize).max(MIN_LINES)).collect()
    }

    fn build(&self, memory: &Memory, scale: f64, seed: u64) -> Built {
        let (name, at_once) = (self.description.name, self.at_once);
        let lines = self.plan(scale, &mut Pcg32::seed_from_u64(seed));
        let count = lines.len();
        let toolchain = Rc::new(Toolchain::new(memory));
        let files = Files::new(memory);
        let done = Rc::new(Done::default());
        let mut application = Application::new(name);
        let daemon = files.clone();
        application.task(&format!("{name}-daemon"), move |cpu| daemon.serve(cpu));
        let make = Make { at_once, lines, toolchain, files, seed, done: Rc::clone(&done) };
        application.task("make", move |cpu| make.run(cpu));
        let check = move || done.check(count, at_once).map_err(|wrong| format!("{name}: {wrong}"));
        Built::new(application, check)
    }
}

/// Sets the program up; see [`crate::build`]. Scale cuts the number of files, then their length.
pub fn build(memory: &Memory, scale: f64, seed: u64) -> Built {
    EIGHT.build(memory, scale, seed)
}

/// The same with four processes.
pub fn build_4(memory: &Memory, scale: f64, seed: u64) -> Built {
    FOUR.build(memory, scale, seed)
}

/// The parent.
struct Make {
    at_once: usize,
    lines: Vec<usize>,
    toolchain: Rc<Toolchain>,
    files: Files,
    seed: u64,
    done: Rc<Done>,
}

impl Make {
    fn run(&self, cpu: &mut Cpu<'_>) {
        cpu.io(MAKE_FILE_BYTES);
        let ended = Semaphore::new(0);
        for (number, &lines) in self.lines.iter().enumerate() {
            if number >= self.at_once {
                ended.wait(cpu);
            }
            cpu.compute(TARGET_CYCLES);
            let random = Pcg32::new(self.seed, number as u64);
            let compiler = Compiler::new(Rc::clone(&self.toolchain), self.files.clone(), random);
            let (ended, done) = (ended.clone(), Rc::clone(&self.done));
            done.started();
            cpu.fork(&format!("cc-{number}"), move |cpu| {
                done.ended(compiler.compile(cpu, lines));
                ended.post(cpu);
            });
        }
        (0..self.lines.len().min(self.at_once)).for_each(|_| ended.wait(cpu));
        self.files.close(cpu);
    }
}

impl Done {
    fn started(&self) {
        self.under_way.set(self.under_way.get() + 1);
        self.most_under_way.set(self.most_under_way.get().max(self.under_way.get()));
    }

    fn ended(&self, result: Result<(), &'static str>) {
        self.under_way.set(self.under_way.get() - 1);
        self.files.set(self.files.get() + 1);
        if let Err(wrong) = result {
            self.wrong.set(Some(wrong));
        }
    }

    fn check(&self, files: usize, at_once: usize) -> Result<(), String> {
        if let Some(wrong) = self.wrong.get() {
            return Err(wrong.into());
        }
        if self.files.get() != files || self.most_under_way.get() > at_once {
            let (done, most) = (self.files.get(), self.most_under_way.get());
            return Err(format!("{done} of {files} files were compiled, up to {most} at once"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(scale: f64) -> Vec<usize> {
        EIGHT.plan(scale, &mut Pcg32::seed_from_u64(2))
    }

    #[test]
    fn at_scale_1_there_are_24_files_of_460_lines_on_average() {
        assert_eq!(lines(1.0).len(), 24);
        let mean = lines(1.0).iter().sum::<usize>() / 24;
        assert!((380..540).contains(&mean), "{mean}");
    }

    #[test]
    fn a_small_scale_keeps_eight_processes_busy() {
        assert_eq!(lines(0.05).len(), EIGHT.at_once);
        assert!(lines(0.05).iter().sum::<usize>() < 8 * 120);
    }
}
