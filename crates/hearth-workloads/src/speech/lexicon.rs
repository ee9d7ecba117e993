//! The words: a tree of phones, in which words that begin alike share nodes.

use super::acoustics::SENONES;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// Words, as many as in the smaller vocabulary of the Wall Street Journal corpus.
pub(super) const WORDS: usize = 5_000;
/// Phones of the language, and of a word at least and at most.
const PHONES: u32 = 40;
const WORD_PHONES: [u32; 2] = [3, 9];
/// States of a phone's hidden Markov model.
pub(super) const STATES: usize = 3;

/// A phone after those that lead to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    phone: u32,
    pub(super) senones: [usize; STATES],
    pub(super) children: Vec<usize>,
    /// The word that ends here.
    pub(super) word: Option<usize>,
}

/// The tree.
pub(super) struct Lexicon {
    pub(super) nodes: Vec<Node>,
    /// First phones.
    pub(super) roots: Vec<usize>,
    /// The nodes of each word.
    pub(super) words: Vec<Vec<usize>>,
}

impl Lexicon {
    /// Words drawn at random, no two of the same phones.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Pcg32::seed_from_u64(seed);
        let mut lexicon = Self { nodes: Vec::new(), roots: Vec::new(), words: Vec::new() };
        while lexicon.words.len() < WORDS {
            let phones = WORD_PHONES[0] + random.next_u32() % (WORD_PHONES[1] - WORD_PHONES[0] + 1);
            let path = (0..phones).fold(Vec::new(), |mut path: Vec<usize>, _| {
                let phone = random.next_u32() % PHONES;
                path.push(lexicon.node_after(path.last().copied(), phone, &mut random));
                path
            });
            let end = path[path.len() - 1];
            if lexicon.nodes[end].word.is_none() {
                lexicon.nodes[end].word = Some(lexicon.words.len());
                lexicon.words.push(path);
            }
        }
        lexicon
    }

    /// The node of a phone after another node, or at the beginning. A phone in a new context has senones of its
    /// own, as triphones have.
    fn node_after(&mut self, before: Option<usize>, phone: u32, random: &mut Pcg32) -> usize {
        let siblings = before.map_or(&self.roots, |before| &self.nodes[before].children);
        if let Some(&node) = siblings.iter().find(|&&node| self.nodes[node].phone == phone) {
            return node;
        }
        let senones = std::array::from_fn(|_| random.next_u32() as usize % SENONES);
        let node = self.nodes.len();
        self.nodes.push(Node { phone, senones, ..Node::default() });
        match before {
            Some(before) => self.nodes[before].children.push(node),
            None => self.roots.push(node),
        }
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_share_their_beginnings_and_differ() {
        let lexicon = Lexicon::new(1);
        let phones: usize = lexicon.words.iter().map(Vec::len).sum();
        assert!(lexicon.roots.len() <= PHONES as usize && lexicon.nodes.len() < phones);
        for (word, path) in lexicon.words.iter().enumerate() {
            assert_eq!(lexicon.nodes[path[path.len() - 1]].word, Some(word));
            assert!(path.windows(2).all(|pair| lexicon.nodes[pair[0]].children.contains(&pair[1])));
        }
    }
}
