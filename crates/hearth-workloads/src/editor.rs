//! A session with a text editor: stands for the editor and the person in front of it.
//!
//! The person goes to a place in the file, thinks, and types a phrase; now and then the file is saved.
//! How long people think and how fast they type are drawn at random, about as typists do. The editor
//! keeps the text in a buffer with a gap at the cursor, as editors of that time did: a key goes into
//! the gap, a move of the cursor moves the text in between. After each key the line is drawn anew, and
//! after a move the page. The buffer and its references are real; the rest of an editor's text (what
//! it does between a key and the screen) is a number of cycles and a stretch of code.

use crate::{Built, Description, Kind, scaled, start};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::{Application, Cpu};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "editor",
    description: "a person at a text editor, who thinks, types and saves for a minute",
    kind: Kind::Synthetic,
    source: "Chandra, Devine, Verghese, Gupta, Rosenblum 1994, section 4.2",
};

/// Phrases of a session at scale 1.
const PHRASES: usize = 9;
const PHRASES_PER_SAVE: usize = 3;
/// Keys of a phrase.
const KEYS: Range<u32> = 10..30;
/// How long the person thinks before a phrase, and until the next key, in milliseconds.
const THINK_MS: Range<u32> = 1_000..5_000;
const KEY_MS: Range<u32> = 100..300;

/// Bytes of the file, of the buffer that holds it, and of the screen: 24 lines of 80 characters.
const FILE_BYTES: usize = 48 << 10;
const BUFFER_BYTES: usize = 64 << 10;
const LINE_BYTES: usize = 80;
const SCREEN_BYTES: usize = 24 * LINE_BYTES;
/// The editor's text that handles a key, and cycles that it takes: some 2 ms.
const KEY_TEXT_BYTES: u64 = 24 << 10;
const KEY_CYCLES: u64 = 60_000;
/// Cycles to draw a word of the screen, to move one in the buffer, and to save one.
const DRAW_CYCLES: u64 = 40;
const MOVE_CYCLES: u64 = 4;
const SAVE_CYCLES: u64 = 6;
const WORD: usize = 8;

/// What the person does, drawn before the session.
struct Phrase {
    think_ms: u32,
    /// Where the cursor goes.
    place: usize,
    /// Letters, and how long each takes.
    keys: Vec<(u8, u32)>,
}

/// The editor with its file.
#[derive(Clone)]
struct Editor {
    text: Array<u8>,
    screen: Array<u8>,
    code: Code,
    /// Where the gap is.
    gap: Rc<RefCell<Range<usize>>>,
    saves: Rc<Cell<usize>>,
}

/// Sets the program up; see [`crate::build`]. Scale cuts the number of phrases.
pub fn build(memory: &Memory, scale: f64, seed: u64) -> Built {
    let mut random = Pcg32::seed_from_u64(seed);
    let phrases: Vec<Phrase> = (0..scaled(PHRASES, scale)).map(|_| Phrase::draw(&mut random)).collect();
    let editor = Editor {
        text: memory.array(BUFFER_BYTES, Placement::FirstTouch),
        screen: memory.array(SCREEN_BYTES, Placement::FirstTouch),
        code: memory.code(KEY_TEXT_BYTES),
        gap: Rc::new(RefCell::new(FILE_BYTES..BUFFER_BYTES)),
        saves: Rc::default(),
    };
    let mut wanted: Vec<u8> = (0..FILE_BYTES).map(|_| letter(&mut random)).collect();
    wanted.iter().enumerate().for_each(|(at, &letter)| editor.text.poke(at, letter));
    for phrase in &phrases {
        let letters = phrase.keys.iter().map(|&(letter, _)| letter);
        wanted.splice(phrase.place..phrase.place, letters);
    }
    let saves = phrases.len().div_ceil(PHRASES_PER_SAVE);
    let mut application = Application::new(DESCRIPTION.name);
    let session = editor.clone();
    application.task("editor", move |cpu| session.run(cpu, &phrases));
    Built::new(application, move || editor.check(&wanted, saves))
}

fn draw(random: &mut Pcg32, range: Range<u32>) -> u32 {
    range.start + random.next_u32() % (range.end - range.start)
}

fn letter(random: &mut Pcg32) -> u8 {
    draw(random, 97..123) as u8
}

impl Phrase {
    fn draw(random: &mut Pcg32) -> Self {
        let think_ms = draw(random, THINK_MS);
        let place = random.next_u32() as usize % FILE_BYTES;
        let count = draw(random, KEYS);
        let keys = (0..count).map(|_| (letter(random), draw(random, KEY_MS))).collect();
        Self { think_ms, place, keys }
    }
}

impl Editor {
    fn run(&self, cpu: &mut Cpu<'_>, phrases: &[Phrase]) {
        start::execute(cpu, FILE_BYTES as u64);
        for (number, phrase) in phrases.iter().enumerate() {
            cpu.sleep_ns(u64::from(phrase.think_ms) * 1_000_000);
            self.go_to(cpu, phrase.place);
            self.draw(cpu, SCREEN_BYTES);
            for &(letter, ms) in &phrase.keys {
                cpu.sleep_ns(u64::from(ms) * 1_000_000);
                self.key(cpu, letter);
            }
            if number % PHRASES_PER_SAVE == 0 {
                self.save(cpu);
            }
        }
    }

    /// Puts a letter into the gap.
    fn key(&self, cpu: &mut Cpu<'_>, letter: u8) {
        cpu.fetch(self.code);
        cpu.compute(KEY_CYCLES);
        let at = self.gap.borrow().start;
        if self.gap.borrow().is_empty() {
            return;
        }
        self.text.set(cpu, at, letter);
        self.gap.borrow_mut().start += 1;
        self.draw(cpu, LINE_BYTES);
    }

    /// Moves the gap to a place of the text, and what is in between to the gap's other side.
    fn go_to(&self, cpu: &mut Cpu<'_>, place: usize) {
        cpu.fetch(self.code);
        while self.gap.borrow().start != place {
            let gap = self.gap.borrow().clone();
            let (count, from, to) = if place < gap.start {
                let count = WORD.min(gap.start - place).min(gap.len());
                (count, gap.start - count, gap.end - count)
            } else {
                let count = WORD.min(place - gap.start).min(gap.len());
                (count, gap.end, gap.start)
            };
            cpu.read(self.text.address(from));
            (0..count).for_each(|at| self.text.poke(to + at, self.text.peek(from + at)));
            cpu.write(self.text.address(to));
            cpu.compute(MOVE_CYCLES);
            let moved = if place < gap.start {
                gap.start - count..gap.end - count
            } else {
                gap.start + count..gap.end + count
            };
            self.gap.replace(moved);
        }
    }

    /// Draws the text before the cursor.
    fn draw(&self, cpu: &mut Cpu<'_>, bytes: usize) {
        let start = self.gap.borrow().start.saturating_sub(bytes);
        for at in (0..bytes).step_by(WORD) {
            cpu.read(self.text.address((start + at).min(BUFFER_BYTES - WORD)));
            cpu.write(self.screen.address(at));
            cpu.compute(DRAW_CYCLES);
        }
    }

    /// Writes the file to disk.
    fn save(&self, cpu: &mut Cpu<'_>) {
        let bytes = BUFFER_BYTES - self.gap.borrow().len();
        for at in (0..bytes).step_by(WORD) {
            cpu.read(self.text.address(at));
            cpu.compute(SAVE_CYCLES);
        }
        cpu.io(bytes as u64);
        self.saves.set(self.saves.get() + 1);
    }

    /// The file has what was typed, where it was typed, and was saved.
    fn check(&self, wanted: &[u8], saves: usize) -> Result<(), String> {
        let gap = self.gap.borrow().clone();
        let places = (0..gap.start).chain(gap.end..BUFFER_BYTES);
        let wrong = places.clone().zip(wanted).position(|(at, &letter)| self.text.peek(at) != letter);
        if let Some(at) = wrong {
            return Err(format!("editor: the letter at {at} is wrong"));
        }
        if places.count() != wanted.len() || self.saves.get() != saves {
            let saved = self.saves.get();
            return Err(format!("editor: the file was saved {saved} of {saves} times, or is too short"));
        }
        Ok(())
    }
}
