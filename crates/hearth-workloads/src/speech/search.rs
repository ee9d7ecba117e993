//! The search: the most likely way through the lexicon's tree, by the algorithm of Viterbi, within a beam.

use super::lexicon::{Lexicon, STATES};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Memory};
use hearth_sim::program::Cpu;

/// How much less likely than the best a state may be, as a logarithm.
const BEAM: f32 = 200.0;
/// The logarithm of the probability of any word after any other.
const WORD_SCORE: f32 = -8.0;
/// Cycles for each state that is looked at, beside its loads and stores.
const STATE_CYCLES: u64 = 12;
/// A state that is not reached.
const UNREACHED: f32 = f32::MIN;
/// No word was spoken before.
pub(super) const NO_WORD: u32 = u32::MAX;

/// What is known of a node's states.
#[derive(Clone, Copy)]
struct Tokens {
    scores: [f32; STATES],
    /// The last word of each state's way, in [`Search::words`].
    words: [u32; STATES],
}

impl Default for Tokens {
    fn default() -> Self {
        Self { scores: [UNREACHED; STATES], words: [NO_WORD; STATES] }
    }
}

/// What a node says that does not change: senones and where its children are.
const NODE_WORDS: usize = 4;

/// The search through a tree.
pub(super) struct Search {
    nodes: Array<u64>,
    tokens: Array<Tokens>,
    /// Nodes with a state within the beam.
    active: Vec<usize>,
    is_active: Vec<bool>,
    /// Words that a way has ended, each with the one before it.
    words: Vec<(usize, u32)>,
}

impl Search {
    pub(super) fn new(memory: &Memory, lexicon: &Lexicon) -> Self {
        let nodes = lexicon.nodes.len();
        Self {
            nodes: memory.array(nodes * NODE_WORDS, Placement::FirstTouch),
            tokens: memory.array(nodes, Placement::FirstTouch),
            active: Vec::new(),
            is_active: vec![false; nodes],
            words: Vec::new(),
        }
    }

    /// Begins an utterance: any word may come.
    pub(super) fn begin(&mut self, cpu: &mut Cpu<'_>, lexicon: &Lexicon) {
        for node in std::mem::take(&mut self.active) {
            self.tokens.set(cpu, node, Tokens::default());
            self.is_active[node] = false;
        }
        self.words.clear();
        lexicon.roots.iter().for_each(|&root| self.enter(cpu, root, 0.0, NO_WORD));
    }

    /// Lets a way into the first state of a node, if it is better than what is there.
    fn enter(&mut self, cpu: &mut Cpu<'_>, node: usize, score: f32, word: u32) {
        let mut tokens = self.tokens.get(cpu, node);
        cpu.compute(STATE_CYCLES);
        if score > tokens.scores[0] {
            (tokens.scores[0], tokens.words[0]) = (score, word);
            self.tokens.set(cpu, node, tokens);
            if !std::mem::replace(&mut self.is_active[node], true) {
                self.active.push(node);
            }
        }
    }

    /// Goes on by a frame, of which all senones are scored.
    pub(super) fn step(&mut self, cpu: &mut Cpu<'_>, lexicon: &Lexicon, scores: &[f32]) {
        let best = self.advance(cpu, lexicon, scores);
        let mut ends: Vec<(usize, f32, u32)> = Vec::new();
        let mut kept = Vec::new();
        for node in std::mem::take(&mut self.active) {
            let mut tokens = self.tokens.peek(node);
            for score in tokens.scores.iter_mut().filter(|score| **score < best - BEAM) {
                *score = UNREACHED;
            }
            self.tokens.set(cpu, node, tokens);
            let last = STATES - 1;
            if tokens.scores[last] > UNREACHED {
                ends.push((node, tokens.scores[last], tokens.words[last]));
            }
            self.is_active[node] = tokens.scores.iter().any(|&score| score > UNREACHED);
            if self.is_active[node] {
                kept.push(node);
            }
        }
        self.active = kept;
        self.leave(cpu, lexicon, &ends);
    }

    /// Each state takes the better of staying and coming from the state before it; returns the best of all.
    fn advance(&mut self, cpu: &mut Cpu<'_>, lexicon: &Lexicon, scores: &[f32]) -> f32 {
        let mut best = UNREACHED;
        for &node in &self.active {
            cpu.read_span(self.nodes.address(node * NODE_WORDS), 8 * NODE_WORDS as u64);
            cpu.compute(STATE_CYCLES * STATES as u64);
            let mut tokens = self.tokens.get(cpu, node);
            for state in (0..STATES).rev() {
                if state > 0 && tokens.scores[state - 1] > tokens.scores[state] {
                    tokens.scores[state] = tokens.scores[state - 1];
                    tokens.words[state] = tokens.words[state - 1];
                }
                if tokens.scores[state] > UNREACHED {
                    tokens.scores[state] += scores[lexicon.nodes[node].senones[state]];
                    best = best.max(tokens.scores[state]);
                }
            }
            self.tokens.poke(node, tokens);
        }
        best
    }

    /// Ways that are at the end of a node go on to its children, and to any word where a word ends. They are there
    /// for the next frame.
    fn leave(&mut self, cpu: &mut Cpu<'_>, lexicon: &Lexicon, ends: &[(usize, f32, u32)]) {
        let mut best_word: Option<(f32, usize, u32)> = None;
        for &(node, score, before) in ends {
            lexicon.nodes[node].children.iter().for_each(|&child| self.enter(cpu, child, score, before));
            if let Some(word) = lexicon.nodes[node].word
                && best_word.is_none_or(|(best, ..)| score > best)
            {
                best_word = Some((score, word, before));
            }
        }
        if let Some((score, word, before)) = best_word {
            let number = self.words.len() as u32;
            self.words.push((word, before));
            lexicon.roots.iter().for_each(|&root| self.enter(cpu, root, score + WORD_SCORE, number));
        }
    }

    /// The words before the end of the most likely way.
    pub(super) fn heard(&self) -> Vec<usize> {
        let mut best = (UNREACHED, NO_WORD);
        for &node in &self.active {
            let tokens = self.tokens.peek(node);
            for (&score, &word) in tokens.scores.iter().zip(&tokens.words) {
                if score > best.0 {
                    best = (score, word);
                }
            }
        }
        let mut heard = Vec::new();
        let mut at = best.1;
        while at != NO_WORD {
            let (word, before) = self.words[at as usize];
            heard.push(word);
            at = before;
        }
        heard.reverse();
        heard
    }
}
