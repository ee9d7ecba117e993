//! Pages: from addresses to physical frames, and which node gives a page its memory.
//!
//! Page frames are in a shuffled order within blocks of 1,024, as a kernel's free list that has been in
//! use is: physically indexed caches see no neat layout, and the simulated memory stays dense, so that
//! everything kept per line is a flat array. Where the kernel colours pages, frames are shuffled among those
//! of a colour. Which frame a page has follows from the seed and the page's number alone, not from who touches it
//! when: under the same seed two policies meet the same layout, and differ by what they do.

use crate::address::{Address, Placement, Segment};
use hearth_machine::{Frames, Machine};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// Marks the frame of a page that nobody has touched yet.
const UNTOUCHED: u32 = 1 << 31;
const SHUFFLED_FRAMES: u32 = 1024;

/// The page table of the machine's one address space, and its frames.
pub(crate) struct Pages {
    page_shift: u32,
    /// Frame by page; a whole number of shuffled blocks.
    frames: Vec<u32>,
    /// Pages set aside so far.
    pages: usize,
    /// By frame: for whom the page was given memory, 0 for the kernel.
    owners: Vec<u16>,
    /// By owner: pages on each node.
    resident: Vec<Vec<u32>>,
    /// Where pages of each segment go: (first page, placement), in order of address.
    segments: Vec<(u32, Placement)>,
    random: Pcg32,
    /// How far apart frames of a colour are; 1 if colours do not matter.
    colours: u32,
    used_bytes: Vec<u64>,
    memory_bytes: Vec<u64>,
    next_round_robin: usize,
}

impl Pages {
    pub(crate) fn new(machine: &Machine, seed: u64) -> Self {
        Self {
            page_shift: machine.page_bytes.trailing_zeros(),
            frames: Vec::new(),
            owners: Vec::new(),
            resident: Vec::new(),
            segments: Vec::new(),
            pages: 0,
            random: Pcg32::seed_from_u64(seed),
            colours: match machine.frames {
                Frames::Shuffled => 1,
                Frames::Coloured => machine.page_colours().min(u64::from(SHUFFLED_FRAMES)) as u32,
            },
            used_bytes: vec![0; machine.nodes.len()],
            memory_bytes: machine.nodes.iter().map(|node| node.memory_bytes).collect(),
            next_round_robin: 0,
        }
    }

    /// Sets aside addresses; memory is given when a page is first touched.
    pub(crate) fn segment(&mut self, bytes: u64, placement: Placement) -> Segment {
        let first = self.pages;
        self.pages += bytes.div_ceil(1 << self.page_shift).max(1) as usize;
        while self.frames.len() < self.pages {
            self.add_shuffled_frames();
        }
        self.segments.push((first as u32, placement));
        Segment { base: (first as Address) << self.page_shift, bytes }
    }

    /// From now on, pages `first..end` that nobody has touched get their memory as `placement` says.
    pub(crate) fn place(&mut self, first: u32, end: u32, placement: Placement) {
        if first >= end {
            return;
        }
        let after = self.placement(end);
        let from = self.segments.partition_point(|(page, _)| *page < first);
        let to = self.segments.partition_point(|(page, _)| *page <= end);
        self.segments.splice(from..to, [(first, placement), (end, after)]);
    }

    fn placement(&self, page: u32) -> Placement {
        self.segments[self.segments.partition_point(|(first, _)| *first <= page) - 1].1
    }

    fn add_shuffled_frames(&mut self) {
        let first = self.frames.len() as u32;
        let mut block: Vec<u32> = (first..first + SHUFFLED_FRAMES).collect();
        let colours = self.colours as usize;
        for last in (colours..block.len()).rev() {
            let alike = last / colours + 1;
            block.swap(last, self.random.next_u32() as usize % alike * colours + last % colours);
        }
        self.frames.extend(block.iter().map(|frame| frame | UNTOUCHED));
        self.owners.resize(self.frames.len(), 0);
    }

    #[inline(always)]
    pub(crate) fn page_of(&self, address: Address) -> u32 {
        (address >> self.page_shift) as u32
    }

    /// The frame of a page, if it has been touched.
    #[inline(always)]
    pub(crate) fn frame(&self, page: u32) -> Option<u32> {
        let frame = self.frames[page as usize];
        (frame & UNTOUCHED == 0).then_some(frame)
    }

    /// Frames that exist so far.
    pub(crate) fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Gives a page its memory, for `owner`: the frame, and the node that has it.
    pub(crate) fn map(&mut self, page: u32, toucher_node: usize, owner: u16) -> (u32, usize) {
        let wanted = match self.placement(page) {
            Placement::FirstTouch => toucher_node,
            Placement::Node(node) => node,
            Placement::RoundRobin => {
                self.next_round_robin = (self.next_round_robin + 1) % self.memory_bytes.len();
                self.next_round_robin
            }
        };
        let node = self.node_with_room(wanted);
        self.used_bytes[node] += 1 << self.page_shift;
        let frame = self.frames[page as usize] & !UNTOUCHED;
        self.frames[page as usize] = frame;
        self.owners[frame as usize] = owner;
        let nodes = self.memory_bytes.len();
        if self.resident.len() <= usize::from(owner) {
            self.resident.resize(usize::from(owner) + 1, vec![0; nodes]);
        }
        self.resident[usize::from(owner)][node] += 1;
        (frame, node)
    }

    /// Whether a node can take one more page.
    pub(crate) fn has_room(&self, node: usize) -> bool {
        self.used_bytes[node] + (1 << self.page_shift) <= self.memory_bytes[node]
    }

    /// Moves a frame from one node to another. Its number, and with it where its lines lie in the
    /// caches, stays: the node has a frame of that colour.
    pub(crate) fn rehome(&mut self, frame: u32, from: usize, node: usize) {
        let bytes = 1 << self.page_shift;
        self.used_bytes[from] -= bytes;
        self.used_bytes[node] += bytes;
        let resident = &mut self.resident[usize::from(self.owners[frame as usize])];
        resident[from] -= 1;
        resident[node] += 1;
    }

    /// How many pages of an owner each node holds; empty if it has none.
    pub(crate) fn resident(&self, owner: u16) -> &[u32] {
        self.resident.get(usize::from(owner)).map_or(&[], Vec::as_slice)
    }

    /// The wanted node, or the next one with room; a machine that is full overcommits the wanted one.
    fn node_with_room(&self, wanted: usize) -> usize {
        let nodes = self.memory_bytes.len();
        (0..nodes).map(|step| (wanted + step) % nodes).find(|&node| self.has_room(node)).unwrap_or(wanted)
    }
}
