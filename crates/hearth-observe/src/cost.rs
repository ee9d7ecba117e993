//! What observing itself costs.

use super::error::ObserveError;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Has the kernel time BPF programs, as long as it lives.
pub(super) fn time_programs() -> Option<OwnedFd> {
    // SAFETY: the call takes a number and makes a file descriptor, or a negative number.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    // SAFETY: the descriptor is new, and nobody else has it.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// How long programs ran so far, and how often, in sum.
pub(super) fn run_time<'a>(
    programs: impl IntoIterator<Item = BorrowedFd<'a>>,
) -> Result<(u64, u64), ObserveError> {
    let mut sum = (0, 0);
    for program in programs {
        let (ns, count) = run_time_of(program)?;
        sum = (sum.0 + ns, sum.1 + count);
    }
    Ok(sum)
}

fn run_time_of(program: BorrowedFd<'_>) -> Result<(u64, u64), ObserveError> {
    let mut info = MaybeUninit::<libbpf_sys::bpf_prog_info>::zeroed();
    let mut length = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    // SAFETY: `info` has room for `length` bytes, and all zeros asks for no lists.
    let result = unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(program.as_fd().as_raw_fd(), info.as_mut_ptr(), &mut length)
    };
    if result != 0 {
        let reason = std::io::Error::from_raw_os_error(-result);
        return Err(ObserveError::System { what: "asking for a BPF program's run time", reason });
    }
    // SAFETY: plain numbers, for which zeros are valid, written over by the kernel.
    let info = unsafe { info.assume_init() };
    Ok((info.run_time_ns, info.run_cnt))
}
