//! What is asked of the machine's CPUs: by whom, with which weight, and within which limits.

/// A set of CPUs, a bit each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mask(Vec<u64>);

impl Mask {
    /// The set of these CPUs.
    pub fn new(cpus: impl IntoIterator<Item = usize>) -> Self {
        let mut words = Vec::new();
        for cpu in cpus {
            if words.len() <= cpu / 64 {
                words.resize(cpu / 64 + 1, 0);
            }
            words[cpu / 64] |= 1 << (cpu % 64);
        }
        Self(words)
    }

    /// How many CPUs it has.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all of its CPUs are in `other`.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.iter().enumerate().all(|(at, word)| word & !other.word(at) == 0)
    }

    /// Whether a CPU is in both.
    pub fn meets(&self, other: &Self) -> bool {
        self.0.iter().enumerate().any(|(at, word)| word & other.word(at) != 0)
    }

    /// The CPUs that are in both.
    pub fn and(&self, other: &Self) -> Self {
        let mut words: Vec<u64> = self.0.iter().enumerate().map(|(at, word)| word & other.word(at)).collect();
        while words.last() == Some(&0) {
            words.pop();
        }
        Self(words)
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    fn word(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or(0)
    }
}

/// A control group: its members share what it gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The group that it is in, which stands before it; of the first, the machine, itself.
    pub parent: usize,
    /// Against the others in its parent.
    pub weight: f64,
    /// CPUs that it may use at most.
    pub quota: f64,
}

impl Group {
    /// The whole machine.
    pub const MACHINE: Self = Self { parent: 0, weight: 1.0, quota: f64::INFINITY };
}

/// A program, or whatever else uses CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    /// Its group, in [`Demand::groups`].
    pub group: usize,
    /// Against the others in its group.
    pub weight: f64,
    /// Where it may run, in [`Demand::masks`].
    pub mask: usize,
    /// CPUs that it would use, of a follower; of anything else, that it uses and waits for.
    pub want: f64,
}

/// All that is asked of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Distinct sets of CPUs. The first is the whole machine.
    pub masks: Vec<Mask>,
    /// The first is the machine; each stands after its parent.
    pub groups: Vec<Group>,
    /// In any order, which is that of the answer.
    pub applications: Vec<Application>,
}

impl Demand {
    /// Of a machine on which nothing runs.
    pub fn of_machine(cpus: Mask) -> Self {
        Self { masks: vec![cpus], groups: vec![Group::MACHINE], applications: Vec::new() }
    }

    /// The index of this mask, as far as the machine has its CPUs; the whole machine for none of them.
    pub fn mask(&mut self, mask: &Mask) -> usize {
        let mask = mask.and(&self.masks[0]);
        if mask.is_empty() {
            return 0;
        }
        self.masks.iter().position(|known| *known == mask).unwrap_or_else(|| {
            self.masks.push(mask);
            self.masks.len() - 1
        })
    }

    /// CPUs of the machine.
    pub fn cpus(&self) -> f64 {
        self.masks[0].len() as f64
    }
}
