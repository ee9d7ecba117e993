//! The schedulers (`bpf/`) compiled for this machine. There is no code here: the build script writes
//! `scheduler/hearth.so`, the papers' `papers.so`, each a second time as `*-interleaved.so`, and the baseline,
//! `kernel.so`, into the folder of finished programs, where `hearth_abi::native` finds them when a program runs. So a
//! changed line in `bpf/` compiles this crate anew, and the programs and tests that name it, but no library.
