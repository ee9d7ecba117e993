//! Hearth's scheduler on CPUs that interleave at every access to memory.
//!
//! On a real machine callbacks of different CPUs run at once, and what goes wrong then happens once
//! in a long time. Here `bpf/` is compiled with a call at each access to memory, and each CPU is a
//! coroutine that may stop there while others go on, for as long as chance has it. Around it is
//! `hearth-scx`, a small kernel with sched_ext's locks: the scheduler is called under those that the
//! kernel holds, and what the kernel lets happen in between can happen in between. Tasks spin, sleep,
//! yield and change each other's masks; plans come and go. A run follows from its [`Setting`] alone, so what it finds can
//! be found again.
//!
//! Accesses are sequentially consistent: what a CPU's store buffer does is not seen here.

mod habits;
mod host;
mod machine;
mod plans;
mod run;
mod setting;
mod switch;

pub use run::run;
pub use setting::{Outcome, Setting, Violation};
