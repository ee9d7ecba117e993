//! Data affinity: a thread says which data it is about to work on, and works where that data is.
//!
//! What data is made of, a fragment, has a number; threads on one fragment run on one CPU, its home.
//! Where Hearth schedules the machine it moves the thread; elsewhere this library does. All of it is
//! advice: a program does the same without.
//!
//! ```
//! # let shard = 3;
//! let _here = hearth_hints::enter(shard);
//! // Here the thread serves the shard; at the end of the block it leaves it.
//! assert_eq!(hearth_hints::fragment(), shard);
//! ```
//!
//! `HEARTH_FRAGMENTS=off` switches it off; `HEARTH_FRAGMENTS=explain` says on standard error, when
//! the process ends, what was decided; `HEARTH_TOPOLOGY` names a file with the CPUs of another
//! machine, such as `0-63`, for which homes are chosen as if the process ran there.

use std::ffi::{CString, c_char, c_int, c_void};
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;

/// What all threads of this process did until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    /// All of the next four.
    pub enters: u64,
    /// The thread was there already.
    pub at_home: u64,
    /// The thread came there.
    pub moved: u64,
    /// It stayed where it was, for to move would have cost more.
    pub stayed: u64,
    /// It stayed: bound by the program, too deep, too many fragments, or fragment 0.
    pub refused: u64,
    /// Leaves without an enter.
    pub unmatched: u64,
    /// Fragments that got another home, since CPUs were unevenly loaded.
    pub rehomed: u64,
    /// Ranges of addresses that were too many.
    pub unranged: u64,
}

unsafe extern "C" {
    safe fn hearth_enter(fragment: u64);
    safe fn hearth_leave();
    safe fn hearth_fragment() -> u64;
    safe fn hearth_fragment_at(data: *const c_void) -> u64;
    safe fn hearth_fragment_range(start: *const c_void, length: usize) -> u64;
    safe fn hearth_fragment_forget(start: *const c_void, length: usize);
    fn hearth_fragment_named(name: *const c_char) -> u64;
    safe fn hearth_fragment_home(fragment: u64) -> c_int;
    safe fn hearth_fragment_is_here(fragment: u64) -> c_int;
    safe fn hearth_fragments_inherit(whether: c_int);
    safe fn hearth_fragment_counts(counts: &mut Counts);
}

/// Leaves its fragment when it is dropped. Guards of one thread are to be dropped in the opposite
/// order of their making, as blocks do.
#[must_use = "the thread leaves the fragment when this is dropped"]
#[derive(Debug)]
pub struct Within {
    /// A thread leaves its own fragments only.
    of_this_thread: PhantomData<*const ()>,
}

/// Moves this thread to the fragment's home before it returns, if it is not there and that is worth
/// more than it costs. Up to 16 deep; entering 0 changes nothing.
pub fn enter(fragment: u64) -> Within {
    hearth_enter(fragment);
    Within { of_this_thread: PhantomData }
}

impl Drop for Within {
    fn drop(&mut self) {
        hearth_leave();
    }
}

/// A future that is within the fragment whenever it is polled, by whichever thread: for the tasks of an
/// executor, whose threads each have many. A guard that is held across an `.await` would be for what
/// else the thread does meanwhile, too.
///
/// ```
/// # let shard = 3;
/// # async fn serve(_shard: u64) {}
/// let task = hearth_hints::within(shard, async move { serve(shard).await });
/// # drop(task);
/// ```
pub async fn within<F: Future>(fragment: u64, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _here = enter(fragment);
        future.as_mut().poll(context)
    })
    .await
}

/// The fragment that this thread is in; 0 if it is in none.
pub fn fragment() -> u64 {
    hearth_fragment()
}

/// The number of the data that begins here, known to this process alone; or of the range that it is in.
pub fn fragment_at<T: ?Sized>(data: &T) -> u64 {
    hearth_fragment_at(std::ptr::from_ref(data).cast())
}

/// Makes this data one fragment: its number is what [`fragment_at`] returns for each part of it, until it is
/// forgotten, as it should be before it is dropped or moved. What overlaps it is forgotten. There may be
/// 16,384 such ranges; of more only the first byte has the number.
///
/// ```
/// let shard = vec![0_u64; 1000];
/// let fragment = hearth_hints::fragments::range(&shard[..]);
/// assert_eq!(hearth_hints::fragment_at(&shard[500]), fragment);
/// hearth_hints::fragments::forget(&shard[..]);
/// ```
pub fn range<T: ?Sized>(data: &T) -> u64 {
    hearth_fragment_range(std::ptr::from_ref(data).cast(), size_of_val(data))
}

/// What overlaps this data is no range any more.
pub fn forget<T: ?Sized>(data: &T) {
    hearth_fragment_forget(std::ptr::from_ref(data).cast(), size_of_val(data));
}

/// The number of a name, the same in all processes. A name ends where it has a zero byte.
pub fn fragment_named(name: &str) -> u64 {
    let bytes = name.bytes().take_while(|byte| *byte != 0).collect::<Vec<_>>();
    let name = CString::new(bytes).unwrap_or_default();
    // SAFETY: the name ends with a zero byte, and is read only during the call.
    unsafe { hearth_fragment_named(name.as_ptr()) }
}

/// The CPU where the fragment was last found, if it has a home.
pub fn home(fragment: u64) -> Option<usize> {
    usize::try_from(hearth_fragment_home(fragment)).ok()
}

/// Whether this thread is at the fragment's home, or could make this one its home: of several things
/// to do next, one whose data is here needs no move.
pub fn is_here(fragment: u64) -> bool {
    hearth_fragment_is_here(fragment) != 0
}

/// Whether a child of `fork` is in the fragment of the thread that made it. At first it is in none.
pub fn inherit(whether: bool) {
    hearth_fragments_inherit(c_int::from(whether));
}

/// What all threads of this process did until now.
pub fn counts() -> Counts {
    let mut counts = Counts::default();
    hearth_fragment_counts(&mut counts);
    counts
}
