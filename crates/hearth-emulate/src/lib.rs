//! A real kernel and real programs in an emulator, over the caches of `hearth-hardware`.

pub mod counts;
