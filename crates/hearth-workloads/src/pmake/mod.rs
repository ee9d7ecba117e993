//! A parallel make: compiles 24 C files of 460 lines on average, eight at a time.
//!
//! `make` reads its file, looks for what is out of date, and starts a compilation whenever fewer than
//! eight are under way. Each compilation is a task of its own (`compiler.rs`), with the passes of that
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

/// Source files at scale 1, and compilations under way at most.
const FILES: usize = 24;
const AT_ONCE: usize = 8;
/// Lines of a file on average; files differ from it by up to half.
const LINES: usize = 460;
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

/// How many files of how many lines: fewer files, but enough to keep eight processes busy; the rest
/// of the scale makes them shorter.
fn plan(scale: f64, random: &mut Pcg32) -> Vec<usize> {
    let files = ((FILES as f64 * scale).round() as usize).clamp(AT_ONCE, FILES);
    let lines = LINES as f64 * scale * FILES as f64 / files as f64;
    let share = |random: &mut Pcg32| 0.5 + f64::from(random.next_u32() % 1000) / 1000.0;
    (0..files).map(|_| ((lines * share(random)) as usize).max(MIN_LINES)).collect()
}

/// Sets the program up; see [`crate::build`]. Scale cuts the number of files, then their length.
pub fn build(memory: &Memory, scale: f64, seed: u64) -> Built {
    let mut random = Pcg32::seed_from_u64(seed);
    let lines = plan(scale, &mut random);
    let count = lines.len();
    let toolchain = Rc::new(Toolchain::new(memory));
    let files = Files::new(memory);
    let done = Rc::new(Done::default());
    let mut application = Application::new(DESCRIPTION.name);
    let daemon = files.clone();
    application.task("pmake-daemon", move |cpu| daemon.serve(cpu));
    let noted = Rc::clone(&done);
    application.task("make", move |cpu| make(cpu, &lines, &toolchain, &files, seed, &noted));
    Built { application, check: Box::new(move || done.check(count)) }
}

/// The parent.
fn make(
    cpu: &mut Cpu<'_>,
    lines: &[usize],
    toolchain: &Rc<Toolchain>,
    files: &Files,
    seed: u64,
    done: &Rc<Done>,
) {
    cpu.io(MAKE_FILE_BYTES);
    let ended = Semaphore::new(0);
    for (number, &lines) in lines.iter().enumerate() {
        if number >= AT_ONCE {
            ended.wait(cpu);
        }
        cpu.compute(TARGET_CYCLES);
        let compiler = Compiler::new(Rc::clone(toolchain), files.clone(), Pcg32::new(seed, number as u64));
        let (ended, done) = (ended.clone(), Rc::clone(done));
        done.started();
        cpu.fork(&format!("cc-{number}"), move |cpu| {
            done.ended(compiler.compile(cpu, lines));
            ended.post(cpu);
        });
    }
    (0..lines.len().min(AT_ONCE)).for_each(|_| ended.wait(cpu));
    files.close(cpu);
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

    fn check(&self, files: usize) -> Result<(), String> {
        if let Some(wrong) = self.wrong.get() {
            return Err(format!("pmake: {wrong}"));
        }
        if self.files.get() != files || self.most_under_way.get() > AT_ONCE {
            let (done, most) = (self.files.get(), self.most_under_way.get());
            return Err(format!("pmake: {done} of {files} files were compiled, up to {most} at once"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(scale: f64) -> Vec<usize> {
        plan(scale, &mut Pcg32::seed_from_u64(2))
    }

    #[test]
    fn at_scale_1_there_are_24_files_of_460_lines_on_average() {
        assert_eq!(lines(1.0).len(), 24);
        let mean = lines(1.0).iter().sum::<usize>() / 24;
        assert!((380..540).contains(&mean), "{mean}");
    }

    #[test]
    fn a_small_scale_keeps_eight_processes_busy() {
        assert_eq!(lines(0.05).len(), AT_ONCE);
        assert!(lines(0.05).iter().sum::<usize>() < 8 * 120);
    }
}
