//! Which node holds a line: node by frame, a frame being a page of physical memory.

/// The home node of every frame.
pub(crate) struct Homes {
    nodes: Vec<u8>,
    /// Lines of a frame, as a power of two.
    line_shift: u32,
}

impl Homes {
    /// Of no frames yet.
    pub(crate) fn new(line_shift: u32) -> Self {
        Self { nodes: Vec::new(), line_shift }
    }

    /// Makes room for frames `0..frames`.
    pub(crate) fn grow(&mut self, frames: usize) {
        if self.nodes.len() < frames {
            self.nodes.resize(frames, 0);
        }
    }

    #[inline(always)]
    pub(crate) fn of_line(&self, line: u32) -> usize {
        self.of_frame(line >> self.line_shift)
    }

    #[inline(always)]
    pub(crate) fn of_frame(&self, frame: u32) -> usize {
        usize::from(self.nodes[frame as usize])
    }

    pub(crate) fn set(&mut self, frame: u32, node: usize) {
        self.nodes[frame as usize] = node as u8;
    }
}
