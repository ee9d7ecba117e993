//! The circuit: wires with pins on a grid of channels and columns, and the runs that routes consist of.

use rand_core::Rng;
use rand_pcg::Pcg32;
use std::ops::RangeInclusive;

/// Columns of the chip, and channels between its rows of cells.
pub const COLUMNS: usize = 1600;
pub const CHANNELS: usize = 20;
/// Places of the grid.
pub const PLACES: usize = COLUMNS * CHANNELS;
/// How far a wire's pins may be from its first one, each way. Most are much nearer: the distance is
/// the product of two random numbers.
const REACH_COLUMNS: usize = 440;
const REACH_CHANNELS: usize = 12;
/// Pins of a wire at most. Half of the wires have two, half of the others three, and so on.
const MOST_PINS: usize = 8;

/// A pin of a cell: where it can be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pin {
    /// The column.
    pub column: u32,
    /// The channel.
    pub channel: u32,
}

impl Pin {
    /// The place on the grid.
    pub fn place(self) -> usize {
        self.channel as usize * COLUMNS + self.column as usize
    }

    fn distance(self, other: Pin) -> u32 {
        self.column.abs_diff(other.column) + self.channel.abs_diff(other.channel)
    }
}

/// The pins of a wire at random.
pub fn wire(random: &mut Pcg32) -> Vec<Pin> {
    let mut unit = || f64::from(random.next_u32() >> 8) / f64::from(1 << 24);
    let first = (unit() * COLUMNS as f64, unit() * CHANNELS as f64);
    let more = (1..MOST_PINS).find(|_| unit() < 0.5).unwrap_or(MOST_PINS - 1);
    let mut around = |at: f64, reach: usize, end: usize| {
        let step = reach as f64 * unit() * unit();
        let to = if unit() < 0.5 { at - step } else { at + step };
        to.abs().min(2.0 * end as f64 - to - 1e-9) as u32
    };
    let mut pins = vec![Pin { column: first.0 as u32, channel: first.1 as u32 }];
    for _ in 0..more {
        let column = around(first.0, REACH_COLUMNS, COLUMNS);
        pins.push(Pin { column, channel: around(first.1, REACH_CHANNELS, CHANNELS) });
    }
    pins
}

/// Joins the pins of a wire by pairs: the shortest tree that connects them (Prim's algorithm).
pub fn segments(pins: &[Pin]) -> Vec<(Pin, Pin)> {
    let mut left: Vec<Pin> = pins[1..].to_vec();
    let mut joined = vec![pins[0]];
    let mut segments = Vec::new();
    while !left.is_empty() {
        let pairs = (0..left.len()).flat_map(|to| joined.iter().map(move |&from| (from, to)));
        let Some((from, to)) = pairs.min_by_key(|&(from, to)| from.distance(left[to])) else { break };
        let pin = left.swap_remove(to);
        segments.push((from, pin));
        joined.push(pin);
    }
    segments
}

/// Steps that the route of a segment has at most: each run includes both of its ends.
pub fn most_steps(&(from, to): &(Pin, Pin)) -> usize {
    from.distance(to) as usize + 3
}

/// Along a channel, or across channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// From column to column.
    #[default]
    Along,
    /// From channel to channel.
    Across,
}

/// A straight part of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where it goes.
    pub direction: Direction,
    from: usize,
    to: usize,
}

impl Run {
    /// Number of places, both ends included.
    pub fn len(&self) -> usize {
        match self.direction {
            Direction::Along => self.from.abs_diff(self.to) + 1,
            Direction::Across => self.from.abs_diff(self.to) / COLUMNS + 1,
        }
    }

    /// Its places, in order from its start.
    pub fn places(self) -> impl Iterator<Item = usize> {
        let step = if self.direction == Direction::Along { 1 } else { COLUMNS };
        let (from, to) = (self.from, self.to);
        (0..self.len())
            .map(move |number| if to >= from { from + number * step } else { from - number * step })
    }
}

/// A way between two pins with at most two bends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Along, across in this column, and along.
    Column(u32),
    /// Across, along in this channel, and across.
    Channel(u32),
}

/// All ways between two pins: one for each column between them, and for each channel.
pub fn routes(from: Pin, to: Pin) -> impl Iterator<Item = Route> {
    let between = |a: u32, b: u32| -> RangeInclusive<u32> { a.min(b)..=a.max(b) };
    let columns =
        if from.channel == to.channel { to.column..=to.column } else { between(from.column, to.column) };
    // The channels of the pins themselves are the first and the last column's routes.
    let channels = from.channel.min(to.channel) + 1..from.channel.max(to.channel);
    let bends = from.column != to.column;
    columns.map(Route::Column).chain(channels.filter(move |_| bends).map(Route::Channel))
}

impl Route {
    /// The runs of the route between two pins, those left out that go nowhere.
    pub fn runs(self, from: Pin, to: Pin) -> impl Iterator<Item = Run> {
        let (first, second) = match self {
            Route::Column(column) => (Pin { column, ..from }, Pin { column, ..to }),
            Route::Channel(channel) => (Pin { channel, ..from }, Pin { channel, ..to }),
        };
        let run = |(from, to): (Pin, Pin)| {
            let direction = if from.channel == to.channel { Direction::Along } else { Direction::Across };
            Run { direction, from: from.place(), to: to.place() }
        };
        [(from, first), (first, second), (second, to)].into_iter().filter(|(from, to)| from != to).map(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    #[test]
    fn segments_join_all_pins_of_a_wire() {
        let mut random = Pcg32::seed_from_u64(3);
        for _ in 0..200 {
            let pins = wire(&mut random);
            let segments = segments(&pins);
            assert_eq!(segments.len(), pins.len() - 1);
            let mut reached = vec![pins[0]];
            for (from, to) in segments {
                assert!(reached.contains(&from));
                reached.push(to);
            }
            assert!(pins.iter().all(|pin| reached.contains(pin)));
            assert!(pins.iter().all(|pin| pin.place() < PLACES && (pin.column as usize) < COLUMNS));
        }
    }

    #[test]
    fn every_route_leads_from_pin_to_pin() {
        let (from, to) = (Pin { column: 9, channel: 7 }, Pin { column: 4, channel: 2 });
        let all: Vec<Route> = routes(from, to).collect();
        assert_eq!(all.len(), 6 + 4);
        for route in all {
            let places: Vec<usize> = route.runs(from, to).flat_map(Run::places).collect();
            assert_eq!((places[0], places[places.len() - 1]), (from.place(), to.place()));
            assert!(places.windows(2).all(|two| [0, 1, COLUMNS].contains(&two[0].abs_diff(two[1]))));
            assert!(places.len() <= most_steps(&(from, to)));
        }
    }

    #[test]
    fn pins_in_one_channel_have_one_straight_way() {
        let (from, to) = (Pin { column: 9, channel: 7 }, Pin { column: 4, channel: 7 });
        assert_eq!(routes(from, to).count(), 1);
        assert_eq!(
            routes(from, to).flat_map(|route| route.runs(from, to)).map(|run| run.len()).sum::<usize>(),
            6
        );
    }
}
