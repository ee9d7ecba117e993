//! Stands for Sphinx, the speech recognizer of Fedorova, Seltzer and Smith (PACT 2007), section 5.2.
//!
//! The algorithm is that of Sphinx-3 without its short cuts: each frame of 10 ms is scored against all Gaussians of
//! the acoustic model, which lies in 15 MB and so streams through the caches; then the most likely way through a tree
//! of phones goes on by a frame, within a beam ("The Incomplete Guide to Sphinx-3 Performance Tuning" names both
//! costs; Agaram, Keckler and Burger, "Characterizing the SPHINX Speech Recognition System", found a large working
//! set of poor locality). The model has one of Sphinx's sizes but random numbers; what is spoken is made from
//! it, a random word after the other, and must be understood. There is no front end and no language model.

mod acoustics;
mod lexicon;
mod search;

use crate::{Built, Description, Kind, Numbers, Parameter, scaled_unless_endless};
use acoustics::{Acoustics, SENONES};
use hearth_sim::memory::Memory;
use hearth_sim::program::{Application, Cpu};
use lexicon::{Lexicon, STATES, WORDS};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use search::Search;
use std::cell::Cell;
use std::rc::Rc;

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "speech",
    description: "recognizes speech: Gaussian mixtures of 15 MB, a beam through a tree of 5,000 words",
    kind: Kind::Synthetic,
    source: "Sphinx-3's algorithm and one of its acoustic models; Fedorova, Seltzer, Smith 2007, section 5.2",
};

/// What may be given with its name.
pub const PARAMETERS: &[Parameter] = &[Parameter {
    name: "frames",
    description: "frames of 10 ms at scale 1; 0 for a program that never ends by itself",
    default: 100,
    range: 0..=100_000_000,
}];

/// Frames of an utterance, and frames that each state of a phone is spoken for.
const UTTERANCE_FRAMES: u64 = 200;
const STATE_FRAMES: usize = 2;

/// A recognizer, and who speaks.
struct Recognizer {
    acoustics: Acoustics,
    lexicon: Lexicon,
    search: Search,
    random: Pcg32,
    /// Words of the utterance that were begun.
    spoken: Vec<usize>,
    /// Senones of the word that is being spoken, the next one last.
    coming: Vec<usize>,
}

/// What a run has done.
#[derive(Default)]
struct Done {
    frames: Cell<u64>,
    /// Utterances that were not understood.
    wrong: Cell<u64>,
}

/// Sets the program up; see [`crate::build`]. Scale cuts the number of frames.
pub(crate) fn build(memory: &Memory, scale: f64, seed: u64, numbers: &Numbers) -> Built {
    let mut recognizer = Recognizer::new(memory, seed);
    let wanted = scaled_unless_endless(numbers.of("frames"), scale);
    let done = Rc::new(Done::default());
    let counted = Rc::clone(&done);
    let mut application = Application::new(DESCRIPTION.name);
    application.is_background = wanted.is_none();
    application.task(DESCRIPTION.name, move |cpu| {
        while wanted.is_none_or(|wanted| counted.frames.get() < wanted) {
            let left = wanted.map_or(u64::MAX, |wanted| wanted - counted.frames.get());
            let understood = recognizer.listen(cpu, left.min(UTTERANCE_FRAMES), &counted.frames);
            counted.wrong.set(counted.wrong.get() + u64::from(!understood));
        }
    });
    Built::new(application, move || match (done.frames.get(), wanted, done.wrong.get()) {
        (frames, Some(wanted), _) if frames != wanted => {
            Err(format!("speech: {frames} frames of {wanted} were heard"))
        }
        (.., 0) => Ok(()),
        (.., wrong) => Err(format!("speech: {wrong} utterances were not understood")),
    })
}

impl Recognizer {
    fn new(memory: &Memory, seed: u64) -> Self {
        let lexicon = Lexicon::new(seed);
        Self {
            acoustics: Acoustics::new(memory, seed),
            search: Search::new(memory, &lexicon),
            lexicon,
            random: Pcg32::seed_from_u64(seed),
            spoken: Vec::new(),
            coming: Vec::new(),
        }
    }

    /// Hears an utterance; whether the words were understood, but for the one that it ends in.
    fn listen(&mut self, cpu: &mut Cpu<'_>, frames: u64, heard: &Cell<u64>) -> bool {
        let mut scores = vec![0.0; SENONES];
        self.spoken.clear();
        self.coming.clear();
        self.search.begin(cpu, &self.lexicon);
        for _ in 0..frames {
            let senone = self.next_senone();
            let frame = self.acoustics.speak(&mut self.random, senone);
            self.acoustics.score(cpu, &frame, &mut scores);
            self.search.step(cpu, &self.lexicon, &scores);
            heard.set(heard.get() + 1);
        }
        self.search.heard() == self.spoken[..self.spoken.len().saturating_sub(1)]
    }

    /// Goes on speaking, by one frame.
    fn next_senone(&mut self) -> usize {
        loop {
            if let Some(senone) = self.coming.pop() {
                return senone;
            }
            let word = self.random.next_u32() as usize % WORDS;
            self.spoken.push(word);
            for &node in self.lexicon.words[word].iter().rev() {
                for state in (0..STATES).rev() {
                    self.coming.extend([self.lexicon.nodes[node].senones[state]; STATE_FRAMES]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial;

    #[test]
    fn what_is_spoken_is_understood() {
        trial::run(|memory| {
            let mut recognizer = Recognizer::new(memory, 4);
            let mut application = Application::new("speech");
            application.task("speech", move |cpu| {
                let heard = [(); 2].map(|()| {
                    assert!(recognizer.listen(cpu, 90, &Cell::new(0)));
                    assert!(recognizer.search.heard().len() > 1, "{:?}", recognizer.spoken);
                    recognizer.search.heard()
                });
                assert_ne!(heard[0], heard[1], "nobody says the same again");
            });
            Built::new(application, || Ok(()))
        });
    }
}
