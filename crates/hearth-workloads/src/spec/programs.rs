//! The nine programs, and where each number comes from.
//!
//! The published tables of Cantin and Hill ("Cache Performance for SPEC CPU2000 Benchmarks", version 3.0, 2003) could
//! not be had, so each curve has few points:
//!
//! | point | source |
//! |---|---|
//! | 8 to 32 KB | the rule of [`Curve::new`](super::curve::Curve::new), one for all programs |
//! | 64 KB | [`Recalled`]: Hennessy and Patterson, "Computer Architecture", 4th edition, chapter 5, the table of CPI and misses per instruction on an AMD Opteron (64 KB 2-way first-level data cache, 64-byte blocks) |
//! | 1 MB of `art` and `mcf` | [`Read`]: Qureshi, Jaleel, Patt, Steely and Emer, "Adaptive Insertion Policies for High Performance Caching" (ISCA 2007), section 4.2 (1 MB, 16-way, 64-byte lines, LRU, Alpha, 250 M instructions) |
//! | 1 MB of `parser`, `twolf`, `vpr` | [`Recalled`]: the same paper, table 2 |
//! | 1 MB of `crafty`, `gcc`, `gzip`, `vortex` | [`Recalled`]: the table of the Opteron (1 MB 16-way second level) |
//! | knees of `art` and `mcf` | [`Derived`] from section 4.2 of the same paper: loads that make 80 % of `art`'s misses go round 640 + 880 KB, so that all of their lines have this depth, and those that make 84 % of `mcf`'s round about 3.5 MB, until which misses fall "only marginally" |
//! | misses at the footprint | [`Derived`]: compulsory misses. `art`, `mcf`, `parser`, `twolf`, `vpr`: 0.5, 2.2, 20.3, 2.9 and 4.3 % of those at 1 MB, recalled from Qureshi, Lynch, Mutlu and Patt, "A Case for MLP-Aware Cache Replacement" (ISCA 2006), table 3; the others are not among that paper's programs because at least half of their misses are compulsory: half |
//! | footprints | [`Recalled`]: Henning, "SPEC CPU2000 Memory Footprint" (spec.org), resident sizes |
//!
//! What is recalled may be wrong: it is to be compared with its source by whoever can read it, and claims that rest
//! on these programs rest on it. What the papers measured are whole programs or a representative slice; phases are not modelled.

use super::curve::Origin::{Derived, Read, Recalled};
use super::curve::{Origin, Point};
use crate::{Description, Kind};

/// A program that is given by its misses.
#[derive(Debug)]
pub struct Program {
    /// What it is.
    pub description: Description,
    /// Its curve from 64 KB on; see [`Curve::new`](super::curve::Curve::new).
    pub points: &'static [Point],
}

/// All of them, by name.
pub const PROGRAMS: [&Program; 9] = [&ART, &CRAFTY, &GCC, &GZIP, &MCF, &PARSER, &TWOLF, &VORTEX, &VPR];

const fn program(name: &'static str, description: &'static str, points: &'static [Point]) -> Program {
    let source = "misses by size of cache of the SPEC CPU2000 program of this name";
    Program { description: Description { name, description, kind: Kind::Synthetic, source }, points }
}

const fn point(kib: u32, misses: f64, origin: Origin) -> Point {
    Point { kib, misses, origin }
}

/// 179.art, image recognition by a neural network.
pub const ART: Program = program(
    "art",
    "misses as 179.art: goes round 1.5 MB",
    &[
        point(64, 56.96, Recalled),
        point(1024, 38.7, Read),
        point(1_519, 38.7, Derived),
        point(1_520, 7.74, Derived),
        point(3_789, 0.19, Derived),
    ],
);

/// 186.crafty, chess.
pub const CRAFTY: Program = program(
    "crafty",
    "misses as 186.crafty: fits into the second level",
    &[point(64, 4.05, Recalled), point(1024, 0.06, Recalled), point(2_048, 0.03, Derived)],
);

/// 176.gcc, a C compiler.
pub const GCC: Program = program(
    "gcc",
    "misses as 176.gcc",
    &[point(64, 19.04, Recalled), point(1024, 0.79, Recalled), point(157_696, 0.4, Derived)],
);

/// 164.gzip, compression.
pub const GZIP: Program = program(
    "gzip",
    "misses as 164.gzip: fits into the second level",
    &[point(64, 16.03, Recalled), point(1024, 0.1, Recalled), point(184_320, 0.05, Derived)],
);

/// 181.mcf, scheduling of vehicles by network simplex.
pub const MCF: Program = program(
    "mcf",
    "misses as 181.mcf: goes round 3.5 MB, in lists",
    &[
        point(64, 148.9, Recalled),
        point(1024, 136.0, Read),
        point(3_583, 136.0, Derived),
        point(3_584, 21.8, Derived),
        point(194_560, 3.0, Derived),
    ],
);

/// 197.parser, English grammar.
pub const PARSER: Program = program(
    "parser",
    "misses as 197.parser",
    &[point(64, 14.8, Recalled), point(1024, 1.57, Recalled), point(37_888, 0.32, Derived)],
);

/// 300.twolf, placement and routing of circuits.
pub const TWOLF: Program = program(
    "twolf",
    "misses as 300.twolf: the whole second level is of use to it",
    &[point(64, 26.18, Recalled), point(1024, 3.48, Recalled), point(3_482, 0.1, Derived)],
);

/// 255.vortex, an object database.
pub const VORTEX: Program = program(
    "vortex",
    "misses as 255.vortex",
    &[point(64, 5.86, Recalled), point(1024, 1.17, Recalled), point(73_728, 0.58, Derived)],
);

/// 175.vpr, placement and routing of FPGAs.
pub const VPR: Program = program(
    "vpr",
    "misses as 175.vpr: the whole second level is of use to it",
    &[point(64, 23.36, Recalled), point(1024, 2.24, Recalled), point(51_200, 0.1, Derived)],
);
