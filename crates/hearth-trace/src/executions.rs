//! A decoded chunk: the blocks that a thread executed, and where their references went.
//!
//! What executing a block adds to each count is known from its shape, once for all executions; only the data
//! addresses are each execution's own.

use crate::event::Event;
use crate::format::Counts;
use crate::shape::{Shape, Shapes, Template, bytes_of, event_at, is_write};
use std::sync::Arc;

/// The blocks of a chunk, in the order in which they were executed: a few bytes an event.
#[derive(Clone, Debug, Default)]
pub struct Executions {
    pub(crate) shapes: Arc<Shapes>,
    /// The shape of each block.
    pub(crate) blocks: Vec<u16>,
    /// Where each reference of each block went.
    pub(crate) addresses: Vec<u64>,
    pub(crate) counts: Counts,
}

impl Executions {
    /// What they do together.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Each of them.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Execution<'_>> {
        let (shapes, templates) = (self.shapes.shapes.as_slice(), self.shapes.templates.as_slice());
        let mut addresses = self.addresses.as_slice();
        self.blocks.iter().map(move |block| {
            let shape = &shapes[usize::from(*block)];
            let templates = &templates[shape.places()];
            let (went, rest) = addresses.split_at(templates.len());
            addresses = rest;
            Execution { shape, templates, addresses: went }
        })
    }
}

/// One execution of a block.
#[derive(Clone, Copy, Debug)]
pub struct Execution<'a> {
    shape: &'a Shape,
    templates: &'a [Template],
    addresses: &'a [u64],
}

impl<'a> Execution<'a> {
    /// Its code fetches, which come first.
    #[inline(always)]
    pub fn fetches(&self) -> &'a [Event] {
        self.shape.fetches()
    }

    /// Its data references, in order.
    #[inline(always)]
    pub fn references(&self) -> impl Iterator<Item = Reference> + use<'a> {
        let both = self.templates.iter().zip(self.addresses);
        both.map(|(template, address)| Reference { template: *template, address: *address })
    }

    /// All that it does, event by event.
    #[inline]
    pub fn events(&self) -> impl Iterator<Item = Event> + use<'a> {
        self.fetches().iter().copied().chain(self.references().map(Reference::event))
    }

    /// Events.
    #[inline(always)]
    pub fn len(&self) -> u64 {
        u64::from(self.shape.fetch_count) + u64::from(self.shape.references)
    }

    /// Whether it does nothing that is recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Data reads.
    #[inline(always)]
    pub fn reads(&self) -> u64 {
        u64::from(self.shape.references - self.shape.writes)
    }

    /// Data writes.
    #[inline(always)]
    pub fn writes(&self) -> u64 {
        u64::from(self.shape.writes)
    }

    /// Instructions beside its loads and stores: all that execute from a fetch on, and all but one from a reference on.
    #[inline(always)]
    pub fn computed(&self) -> u64 {
        u64::from(self.shape.computed)
    }
}

/// A data reference.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    template: Template,
    address: u64,
}

impl Reference {
    /// As [`Event::address`].
    #[inline(always)]
    pub fn address(self) -> u64 {
        self.address
    }

    /// As [`Event::bytes`].
    #[inline(always)]
    pub fn bytes(self) -> u32 {
        bytes_of(self.template)
    }

    /// As [`Event::is_write`].
    #[inline(always)]
    pub fn is_write(self) -> bool {
        is_write(self.template)
    }

    /// The event that it is.
    #[inline(always)]
    pub fn event(self) -> Event {
        event_at(self.template, self.address)
    }
}
