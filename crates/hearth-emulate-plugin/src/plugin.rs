//! The plugin's state: the region that is counted, if one is, and how one begins and ends.
//!
//! ```text
//!          BEGIN                new code            END                 new code
//!   Off ---------> Beginning --------------> On ---------> Ending ---------------> Off
//! ```
//! What QEMU has translated has the callbacks of when it was translated. So at each change it is asked to translate
//! everything anew, and what the change is about happens when that is done: at the end of the block of code that
//! called. So it is where counts begin anew within a region. Outside of regions only calls and switches of tasks are
//! looked for, and the guest runs at full speed.

use crate::arguments::{Arguments, Refusal};
use crate::model::{Mode, Model, Stretch};
use crate::qemu::{Beside, Registers};
use crate::tasks::{Named, Tasks};
use crate::timing::Timing;
use crate::turns;
use hearth_emulate::counts::{Counts, Region, Report, SCHEMA};
use qemu_plugin_sys::qemu_plugin_id_t;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Length of a name of a task (`TASK_COMM_LEN`).
const COMM: usize = 16;
/// Most of a region's name that is looked at.
const NAME: u64 = 256;

/// Where the guest's kernel switches tasks, and where it keeps their names.
#[derive(Clone, Copy)]
pub(crate) struct Symbols {
    pub(crate) switch_to: u64,
    pid: u64,
    comm: u64,
}

impl Symbols {
    /// A task, by where the kernel keeps it.
    fn task(self, registers: &Registers, task: u64) -> Named {
        Named { pid: registers.word(task + self.pid), comm: registers.text(task + self.comm, COMM) }
    }
}

enum Phase {
    Off,
    Beginning {
        name: String,
    },
    /// `is_anew`: its counts are to begin anew.
    On {
        name: String,
        begin_ns: u64,
        is_anew: bool,
    },
    Ending {
        region: Region,
        begin_ns: u64,
        next: Option<String>,
    },
}

/// Everything that the plugin knows.
pub(crate) struct Plugin {
    id: qemu_plugin_id_t,
    arguments: Arguments,
    beside: Beside,
    registers: Vec<Registers>,
    /// By CPU: where the kernel keeps the task that runs; 0 before the first switch that was seen.
    running: Vec<u64>,
    phase: Phase,
    pub(crate) model: Option<Model>,
    tasks: Tasks,
    pub(crate) symbols: Option<Symbols>,
    report: Report,
    pub(crate) timing: Option<Timing>,
    /// By CPU: what was counted in regions that have ended.
    earlier: Vec<Counts>,
    /// By CPU of the machine: what was counted in this region before its counts began anew.
    before: Vec<Counts>,
}

impl Plugin {
    /// Before the guest starts.
    ///
    /// # Errors
    /// What cannot be counted, and a file that cannot be written.
    pub(crate) fn new(id: qemu_plugin_id_t, arguments: Arguments, cpus: usize) -> Result<Self, Refusal> {
        let machine = &arguments.machine;
        if cpus > machine.cpus() {
            let name = machine.name.clone();
            return Err(Refusal::TooManyCpus { guest: cpus, machine: name, cpus: machine.cpus() });
        }
        Model::new(machine, &arguments.node_bytes, arguments.quantum_cycles.is_some())?;
        let quantum = arguments.quantum_cycles;
        let begin_ns = arguments.begin.as_deref().map_or(Ok(0), begin)?;
        let timing = quantum
            .map(|quantum| Timing::new(machine.cpus(), machine.cycle_ps(), quantum, begin_ns))
            .transpose()?;
        let report = Report {
            schema: SCHEMA,
            machine: machine.name.clone(),
            cycle_ps: machine.cycle_ps(),
            regions: Vec::new(),
        };
        write(&arguments.out, &report)
            .map_err(|source| Refusal::Out { path: arguments.out.clone(), source })?;
        Ok(Self {
            id,
            beside: Beside::find()?,
            registers: Vec::new(),
            running: vec![0; cpus],
            phase: Phase::Off,
            model: None,
            tasks: Tasks::new(machine),
            symbols: None,
            report,
            timing,
            earlier: vec![Counts::default(); cpus],
            before: vec![Counts::default(); arguments.machine.cpus()],
            arguments,
        })
    }

    /// QEMU is about to start a CPU, after those of smaller numbers.
    ///
    /// # Errors
    /// A clock that cannot be taken over, and a QEMU that is not the one that is needed.
    pub(crate) fn add_cpu(&mut self, cpu: usize, own_ticks: fn() -> i64) -> Result<(), Refusal> {
        if cpu == 0 {
            turns::let_cpus_finish()?;
        }
        if let Some(timing) = &mut self.timing {
            timing.add_cpu(cpu, own_ticks)?;
        }
        self.beside.tell_cpus_apart(cpu);
        self.registers.push(Registers::find());
        Ok(())
    }

    /// The line of a piece of code, if it is in memory.
    pub(crate) fn line_of_code(&self, host: *mut std::ffi::c_void) -> Option<u32> {
        let bytes: u64 = self.arguments.node_bytes.iter().sum();
        let offset = self.beside.memory_offset(host);
        (offset < bytes).then(|| (offset >> self.arguments.machine.line_bytes.trailing_zeros()) as u32)
    }

    /// Bytes of a line.
    pub(crate) fn line_bytes(&self) -> u64 {
        self.arguments.machine.line_bytes
    }

    /// A CPU executes code of the other mode.
    #[cold]
    pub(crate) fn change_mode(&mut self, cpu: usize, mode: Mode) {
        let Some(model) = &mut self.model else { return };
        self.tasks.settle(cpu, model.counts(cpu), model.mode(cpu));
        model.set_mode(cpu, mode);
    }

    /// A CPU executes a stretch of code.
    #[inline(always)]
    pub(crate) fn execute(&mut self, cpu: usize, stretch: Stretch) {
        let Some(model) = &mut self.model else { return };
        if model.mode(cpu) != stretch.mode() {
            self.change_mode(cpu, stretch.mode());
        }
        let Some(model) = &mut self.model else { return };
        model.execute(cpu, stretch);
    }

    /// A CPU has executed for a while in a region, and its time is to be looked at.
    pub(crate) fn look(&mut self, cpu: usize) {
        if let (Some(timing), Some(model)) = (&mut self.timing, &mut self.model) {
            timing.look_inside(cpu, model);
        }
    }

    /// The time of the CPU that this thread runs, in nanoseconds.
    pub(crate) fn own_ns(&mut self) -> u64 {
        self.timing.as_mut().map_or(0, |timing| timing.own_ns(self.model.as_mut()))
    }

    /// The kernel switches tasks on a CPU.
    pub(crate) fn switch(&mut self, cpu: usize) {
        let Some(symbols) = self.symbols else { return };
        let registers = &self.registers[cpu];
        let (previous, next) = registers.arguments();
        self.running[cpu] = next;
        let (previous, next) = (symbols.task(registers, previous), symbols.task(registers, next));
        if let Some(model) = &self.model {
            self.tasks.settle(cpu, model.counts(cpu), model.mode(cpu));
        }
        let running = self.tasks.switch(cpu, &previous, &next);
        if let Some(model) = &mut self.model {
            model.set_task(cpu, running.number, running.moved);
        }
    }

    /// A program of the guest calls.
    pub(crate) fn call(&mut self, cpu: usize) {
        let (operation, first, second) = self.registers[cpu].call();
        match operation {
            1 => self.begin(self.name(cpu, first, second)),
            2 => self.end(cpu, &self.name(cpu, first, second)),
            3 => self.tell_counts(cpu, first, second),
            4 => self.take_symbols(first, second),
            5 => self.tell_counters(cpu, first, second),
            6 => self.count_anew(),
            _ => say(&format!("call {operation} of the guest is not known")),
        }
    }

    fn name(&self, cpu: usize, address: u64, length: u64) -> String {
        self.registers[cpu].text(address, length.min(NAME) as usize)
    }

    fn take_symbols(&mut self, switch_to: u64, offsets: u64) {
        self.symbols = Some(Symbols { switch_to, pid: offsets & 0xffff_ffff, comm: offsets >> 32 });
        self.translate_anew();
    }

    fn begin(&mut self, begun: String) {
        match &mut self.phase {
            Phase::Off => {
                self.phase = Phase::Beginning { name: begun };
                self.translate_anew();
            }
            Phase::Ending { next: next @ None, .. } => *next = Some(begun),
            Phase::Beginning { name } | Phase::On { name, .. } | Phase::Ending { next: Some(name), .. } => {
                say(&format!("region {begun:?} begins within region {name:?}, and is not counted"));
            }
        }
    }

    fn end(&mut self, cpu: usize, ended: &str) {
        let begin_ns = match &self.phase {
            Phase::On { name, begin_ns, .. } if name == ended => *begin_ns,
            Phase::Beginning { name } if name == ended => u64::MAX,
            _ => return say(&format!("region {ended:?} ends, and has not begun")),
        };
        self.name_running(cpu);
        let region = Region { is_ended: true, ..self.take_counts(ended) };
        self.phase = Phase::Ending { region, begin_ns, next: None };
        self.translate_anew();
    }

    /// What was counted in this region so far is to be none of it, and the caches are to stay as they are.
    fn count_anew(&mut self) {
        match &mut self.phase {
            Phase::On { is_anew, .. } => {
                *is_anew = true;
                self.translate_anew();
            }
            _ => say("counts are to begin anew outside of a region"),
        }
    }

    /// What a CPU has counted in this region.
    fn in_region(&self, model: &Model, cpu: usize) -> Counts {
        model.counts(cpu) - self.before[cpu]
    }

    /// Looks at what the tasks that run are called, as one CPU sees the kernel's memory.
    fn name_running(&mut self, cpu: usize) {
        let Some(symbols) = self.symbols else { return };
        for task in self.running.iter().filter(|task| **task != 0) {
            self.tasks.name(&symbols.task(&self.registers[cpu], *task));
        }
    }

    fn take_counts(&mut self, name: &str) -> Region {
        let Some(model) = &self.model else { return Region { name: name.to_owned(), ..Region::default() } };
        let cpus: Vec<Counts> = (0..model.cpus()).map(|cpu| self.in_region(model, cpu)).collect();
        for cpu in 0..model.cpus() {
            self.tasks.settle(cpu, model.counts(cpu), model.mode(cpu));
        }
        if let Some(physical) = model.unnamed() {
            say(&format!(
                "the guest has memory at {physical:#x}, which is not counted; name all of it with node_mib="
            ));
        }
        let tasks = if self.symbols.is_some() { self.tasks.of_region() } else { Vec::new() };
        Region { name: name.to_owned(), cpus, tasks, ..Region::default() }
    }

    /// Writes into the memory of the task that calls, in words of 64 bits: the CPU, the task's pid, what the CPU has
    /// counted in this region, what the task has in user mode, and what in the kernel. As much as there is room for;
    /// nothing outside of regions, or where no memory is.
    fn tell_counts(&mut self, cpu: usize, address: u64, room: u64) {
        let Some(model) = &self.model else { return };
        let on_cpu = self.in_region(model, cpu);
        self.tasks.settle(cpu, model.counts(cpu), model.mode(cpu));
        let task = self.tasks.running_on(cpu);
        let head = vec![cpu as u64, u64::from(task.pid)];
        let words = [head, on_cpu.words(), task.user.words(), task.kernel.words()].concat();
        self.tell(cpu, address, room, &words);
    }

    /// Writes what a CPU's counters have, which never go back, and stand still outside of regions.
    fn tell_counters(&self, cpu: usize, address: u64, room: u64) {
        let words = self.counted(cpu).counters(self.report.cycle_ps);
        self.tell(cpu, address, room, &words);
    }

    /// What a CPU has counted in all regions.
    fn counted(&self, cpu: usize) -> Counts {
        let mut all = self.earlier[cpu];
        all += self.model.as_ref().map(|model| model.counts(cpu)).unwrap_or_default();
        all
    }

    /// Writes words into the memory of the task that runs on a CPU, as many as there is room for.
    fn tell(&self, cpu: usize, address: u64, room: u64, words: &[u64]) {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(room as usize);
        if !self.beside.write_memory(cpu, address, &mut bytes) {
            say(&format!(
                "the guest asked for counts at {address:#x}, where it has no memory; touch it first"
            ));
        }
    }

    fn translate_anew(&self) {
        crate::callbacks::translate_anew(self.id);
    }

    /// All translations are gone. No code of the guest runs.
    pub(crate) fn is_translated_anew(&mut self) {
        match std::mem::replace(&mut self.phase, Phase::Off) {
            Phase::Beginning { name } => self.start(name),
            Phase::Ending { mut region, begin_ns, next } => {
                region.guest_ns = self.since(begin_ns);
                self.earlier = (0..self.earlier.len()).map(|cpu| self.counted(cpu)).collect();
                if let (Some(timing), Some(model)) = (&mut self.timing, &self.model) {
                    timing.end(model);
                }
                self.model = None;
                self.finish(region);
                if let Some(name) = next {
                    self.start(name);
                }
            }
            Phase::On { name, is_anew: true, .. } => {
                let before =
                    self.model.iter().flat_map(|model| (0..model.cpus()).map(|cpu| model.counts(cpu)));
                self.before = before.collect();
                self.tasks.begin_region(&self.before);
                self.phase = Phase::On { name, begin_ns: self.beside.clock_ns(), is_anew: false };
            }
            same => self.phase = same,
        }
    }

    fn start(&mut self, name: String) {
        match Model::new(&self.arguments.machine, &self.arguments.node_bytes, self.timing.is_some()) {
            Ok(mut model) => {
                if let Some(timing) = &mut self.timing {
                    timing.begin(&mut model);
                }
                self.before.fill(Counts::default());
                self.tasks.begin_region(&self.before);
                (0..model.cpus()).for_each(|cpu| model.set_task(cpu, self.tasks.number_on(cpu), false));
                crate::callbacks::execute_on(model.all_cpus());
                self.model = Some(model);
                self.phase = Phase::On { name, begin_ns: self.beside.clock_ns(), is_anew: false };
            }
            Err(error) => say(&error.to_string()),
        }
    }

    /// How far the guest's clock has moved.
    fn since(&self, begin_ns: u64) -> u64 {
        self.beside.clock_ns().saturating_sub(begin_ns)
    }

    fn finish(&mut self, region: Region) {
        self.report.regions.push(region);
        if let Err(error) = write(&self.arguments.out, &self.report) {
            say(&format!("{}: {error}", self.arguments.out.display()));
        }
    }

    /// Says where the clock has come to, if that is asked for.
    fn write_clock(&mut self) {
        let Some(clock) = self.arguments.clock.as_deref() else { return };
        let Some(timing) = &mut self.timing else { return };
        if let Err(error) = std::fs::write(clock, format!("{}\n", timing.latest_ns())) {
            say(&format!("{}: {error}", clock.display()));
        }
    }

    /// QEMU ends. A region that has not is counted as far as it came.
    pub(crate) fn exit(&mut self) {
        self.write_clock();
        match std::mem::replace(&mut self.phase, Phase::Off) {
            Phase::On { name, begin_ns, .. } => {
                let guest_ns = self.since(begin_ns);
                let region = self.take_counts(&name);
                self.finish(Region { guest_ns, ..region });
            }
            Phase::Ending { region, begin_ns, .. } => {
                self.finish(Region { guest_ns: self.since(begin_ns), ..region });
            }
            Phase::Off | Phase::Beginning { .. } => {}
        }
    }
}

/// Where the guest's clock begins.
fn begin(clock: &Path) -> Result<u64, Refusal> {
    let wrong = |what: String| Refusal::Begin { path: clock.to_owned(), what };
    let text = std::fs::read_to_string(clock).map_err(|error| wrong(error.to_string()))?;
    text.trim().parse().map_err(|_| wrong(format!("{:?} is no number of nanoseconds", text.trim())))
}

/// Says a line where whoever started QEMU sees it.
pub(crate) fn say(line: &str) {
    eprintln!("hearth: {line}");
}

fn write(path: &Path, report: &Report) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    serde_json::to_writer(&mut out, report)?;
    out.write_all(b"\n")?;
    out.flush()
}
