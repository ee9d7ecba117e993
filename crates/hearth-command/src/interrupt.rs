//! Ctrl-C: the first asks to stop, the second ends the process at once.

use crate::failure::Failure;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that becomes true on Ctrl-C or SIGTERM.
pub fn flag() -> Result<&'static AtomicBool, Failure> {
    let stop: &'static Arc<AtomicBool> = Box::leak(Box::new(Arc::new(AtomicBool::new(false))));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, Arc::clone(stop)).map_err(Failure::failed)?;
        flag::register(signal, Arc::clone(stop)).map_err(Failure::failed)?;
    }
    Ok(stop)
}
