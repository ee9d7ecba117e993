//! Simulated hardware: caches, coherence, TLB, memory nodes and their bandwidth.
//!
//! Exact, deterministic and fast; it knows CPUs and addresses, but no task and no kernel. Its
//! parts meet in small integers: a [`Port`] is one CPU's side (its clock and a filter for repeated
//! references), [`Memory`] is the caches and what is behind them, and a *line* is the number of a
//! physical cache line. [`Hardware`] puts simulated pages and TLBs in front of it; a guest that
//! translates addresses itself uses the memory as it is.
//!
//! One address names one byte of memory for every task of a machine: programs that share memory use
//! the same addresses, programs that do not are given different ones. See `docs/realism.md`.

mod address;
mod cache;
mod channel;
mod coherence;
mod counters;
mod hardware;
mod homes;
mod last_level;
mod levels;
mod memory;
mod misses;
mod pages;
mod pieces;
mod port;
mod tlb;

pub use address::{Access, Address, Mode, Placement, Segment};
pub use counters::{Cause, Counters};
pub use hardware::{Hardware, Missed, Touched};
pub use levels::Unsupported;
pub use memory::Memory;
pub use misses::{Kinds, Miss, MissKind, MissLog};
pub use pieces::{Piece, Span, Work};
pub use port::Port;
