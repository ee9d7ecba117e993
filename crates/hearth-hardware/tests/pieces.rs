//! A piece of a program executed as a whole comes to what its references come to one by one.

#![allow(clippy::unwrap_used)]

use hearth_hardware::{Access, Address, Hardware, Mode, Piece, Placement, Port, Span, Work};
use hearth_machine::Machine;
use proptest::prelude::*;
use std::rc::Rc;

const PAGES: u64 = 600;
const PAGE_BYTES: u64 = 4096;

#[derive(Clone, Debug)]
struct Made {
    code: Vec<Span>,
    data: Vec<(Span, bool)>,
    computed: u64,
}

impl Piece for &Made {
    fn work(&self) -> Work {
        let writes = self.data.iter().filter(|(_, is_write)| *is_write).count() as u64;
        Work { reads: self.data.len() as u64 - writes, writes, computed: self.computed }
    }

    fn fetches(&self) -> impl Iterator<Item = Span> {
        self.code.iter().copied()
    }

    fn references(&self) -> impl Iterator<Item = (Span, bool)> {
        self.data.iter().copied()
    }
}

/// A CPU of a machine, and what the others may do to it.
struct Side {
    hardware: Hardware,
    port: Rc<Port>,
}

impl Side {
    fn new(machine: &Machine) -> Self {
        let mut hardware = Hardware::new(machine, 1).unwrap();
        assert_eq!(hardware.segment(PAGES * PAGE_BYTES, Placement::FirstTouch).base, 0);
        let port = Rc::clone(&hardware.ports()[0]);
        Self { hardware, port }
    }

    fn one(&mut self, cpu: usize, address: Address, access: Access) {
        let port = Rc::clone(&self.hardware.ports()[cpu]);
        let hits = match access {
            Access::Read => port.read(address),
            Access::Write => port.write(address),
            Access::Fetch => port.fetch(address),
        };
        if !hits {
            let _ = self.hardware.reference(cpu, address, access, Mode::User);
        }
    }

    fn step_by_step(&mut self, piece: &Made) {
        let line_bytes = self.hardware.line_bytes();
        for Span { first, last } in &piece.code {
            let lines = first / line_bytes..=last / line_bytes;
            lines.for_each(|line| self.one(0, line * line_bytes, Access::Fetch));
        }
        for (Span { first, last }, is_write) in &piece.data {
            let access = if *is_write { Access::Write } else { Access::Read };
            self.one(0, *first, access);
            if first / line_bytes != last / line_bytes {
                self.one(0, *last, access);
            }
        }
        self.port.compute(piece.computed);
    }
}

/// Bytes within a page: few places of few pages, so that most of them are found where they were.
fn span(most_bytes: u64) -> impl Strategy<Value = Span> {
    let page = prop_oneof![8 => 0..4u64, 2 => 0..40u64, 1 => 0..PAGES];
    (page, prop_oneof![0..64u64, 0..PAGE_BYTES], 0..most_bytes).prop_map(|(page, offset, more)| {
        let first = page * PAGE_BYTES + offset;
        Span { first, last: first + more.min(PAGE_BYTES - 1 - offset) }
    })
}

fn piece() -> impl Strategy<Value = Made> {
    let code = prop::collection::vec(span(200), 0..3);
    let data = prop::collection::vec((span(16), any::<bool>()), 0..7);
    (code, data, 0..12u64).prop_map(|(code, data, computed)| Made { code, data, computed })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn pieces_come_to_what_their_references_come_to(
        name in prop::sample::select(vec!["xeon-smp2", "sgi-4d340", "dash-16", "server-2s", "t1-dual"]),
        pieces in prop::collection::vec((piece(), 1..6usize, prop::option::of((span(1), any::<bool>()))), 1..60),
        limits in prop::collection::vec(0..400u64, 8),
    ) {
        let machine = Machine::load(name).unwrap();
        let [mut whole, mut single] = [Side::new(&machine), Side::new(&machine)];
        for (round, (piece, times, other)) in pieces.iter().enumerate() {
            let ahead_ps = limits[round % limits.len()] * machine.cycle_ps();
            whole.port.set_limit_ps(whole.port.now_ps() + ahead_ps);
            let mut left = std::iter::repeat_n(piece, *times);
            while let Some(piece) = whole.port.clone().run(&mut left) {
                whole.step_by_step(piece);
            }
            (0..*times).for_each(|_| single.step_by_step(piece));
            if let Some((Span { first, .. }, is_write)) = other {
                let access = if *is_write { Access::Write } else { Access::Read };
                [&mut whole, &mut single].into_iter().for_each(|side| side.one(1, *first, access));
            }
            prop_assert_eq!(whole.port.now_ps(), single.port.now_ps());
            prop_assert_eq!(whole.port.counters(), single.port.counters());
        }
    }

    #[test]
    fn a_piece_that_might_not_end_before_the_limit_is_handed_back_untouched(piece in piece(), cycles in 0..60u64) {
        let machine = Machine::load("xeon-smp2").unwrap();
        let mut side = Side::new(&machine);
        (0..2).for_each(|_| side.step_by_step(&piece));
        let (now_ps, before) = (side.port.now_ps(), side.port.counters());
        side.port.set_limit_ps(now_ps + cycles * machine.cycle_ps());
        match side.port.run(&mut std::iter::once(&piece)) {
            Some(_) => prop_assert_eq!((side.port.now_ps(), side.port.counters()), (now_ps, before)),
            None => prop_assert!(side.port.now_ps() < side.port.limit_ps()),
        }
    }
}
