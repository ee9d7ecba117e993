//! Where one CPU stops and another goes on. Each CPU is a coroutine; the scheduler's accesses to
//! memory, deep in C, may suspend the one that makes them.

#![allow(unsafe_code)]

use crate::host::Interleaved;
use corosensei::Yielder;
use hearth_scx::Scx;
use std::cell::Cell;
use std::ptr::null;

thread_local! {
    /// The CPU that runs, and what it runs on; null while none does.
    static CPU: Cell<*const Yielder<(), ()>> = const { Cell::new(null()) };
    static STATE: Cell<*const Scx<Interleaved>> = const { Cell::new(null()) };
}

/// Suspends the CPU that runs. Does nothing where none does.
pub(crate) fn suspend() {
    let cpu = CPU.get();
    if cpu.is_null() {
        return;
    }
    // SAFETY: `enter` set it to the yielder of the coroutine that runs, which lives as long as the
    // coroutine is not at its end; it is set again before the coroutine goes on.
    unsafe { &*cpu }.suspend(());
    CPU.set(cpu);
}

/// The calling coroutine is the CPU that runs.
pub(crate) fn enter(yielder: &Yielder<(), ()>) {
    CPU.set(yielder);
}

/// No CPU runs.
pub(crate) fn leave() {
    CPU.set(null());
}

/// Runs `what` with accesses that are told to `state`.
pub(crate) fn with_accesses<T>(state: &Scx<Interleaved>, what: impl FnOnce() -> T) -> T {
    STATE.set(state);
    let result = what();
    STATE.set(null());
    result
}

/// The scheduler is about to access memory.
pub(crate) extern "C" fn access() {
    let state = STATE.get();
    if !state.is_null() && !CPU.get().is_null() {
        // SAFETY: `with_accesses` has a reference to it for as long as this is set.
        unsafe { &*state }.gap();
    }
}
