//! How simulated time drives the guest's clock, in QEMU.
//!
//! QEMU asks a table of functions of its accelerator for the guest's time. Under plain emulation three of them are
//! empty, and it takes the host's time; here they are filled. Where they are in the table belongs to one build of
//! QEMU: it is tried out before the guest starts, and another build is refused.
//!
//! A CPU that is ahead of the clock is stopped until that has come near. It is not enough that it lets the others have
//! their turns: one that waits in a loop of `PAUSE` gives its own back at once, and time would hardly pass for it.
//!
//! When all CPUs wait nothing moves time. The thread that runs them is about to wait, too; instead it sets the clock to
//! the next timer, or to where the first of those that are stopped goes on.
//!
//! What the guest does must not follow the host's time. So nothing else moves the clock.

use crate::arguments::Refusal;
use crate::qemu::symbol;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// `QEMU_CLOCK_VIRTUAL`.
const VIRTUAL_CLOCK: c_int = 1;
/// Timers of any sort.
const ANY_TIMER: c_int = -1;
/// `AccelOpsClass` of QEMU 10.0: `get_virtual_clock`, `set_virtual_clock`, `get_elapsed_ticks`.
const TABLE: usize = 0xc0;
/// How long others may run where all CPUs wait and the next timer was none of theirs: the guest may have ended.
const PAUSE: Duration = Duration::from_micros(20);

/// The guest's clock.
static NOW_NS: AtomicI64 = AtomicI64::new(0);
/// What tells a CPU's own time, once there is something that can.
static TICKS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// CPUs that are ahead of the guest's clock.
static STOPPED: Mutex<Vec<Stopped>> = Mutex::new(Vec::new());

/// QEMU's pointers to all CPUs.
static CPUS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// A CPU that does not run until the guest's clock has come to a time.
struct Stopped {
    until_ns: i64,
    /// QEMU's pointer to it.
    cpu: usize,
    resume: unsafe extern "C" fn(*mut c_void),
}

/// Has the CPUs go on whose time it is.
fn go_on(ns: i64) {
    STOPPED.lock().unwrap_or_else(PoisonError::into_inner).retain(|stopped| {
        let stays = stopped.until_ns > ns;
        if !stays {
            // SAFETY: the CPU is one that QEMU has named. It may be called on any thread.
            unsafe { (stopped.resume)(stopped.cpu as *mut c_void) };
        }
        stays
    });
}

unsafe extern "C" fn now_ns() -> i64 {
    NOW_NS.load(Ordering::Relaxed)
}

unsafe extern "C" fn set_now_ns(ns: i64) {
    NOW_NS.fetch_max(ns, Ordering::Relaxed);
    go_on(ns);
}

/// The guest's time-stamp counters count nanoseconds.
unsafe extern "C" fn ticks() -> i64 {
    let own = TICKS.load(Ordering::Relaxed);
    if own.is_null() {
        return NOW_NS.load(Ordering::Relaxed);
    }
    // SAFETY: it was stored by `begin`, from a function of this type.
    let own = unsafe { std::mem::transmute::<*mut c_void, fn() -> i64>(own) };
    own()
}

macro_rules! functions {
    ($($name:ident: $symbol:literal, $type:ty;)*) => {
        /// Functions of QEMU that time needs.
        #[derive(Clone, Copy)]
        struct Functions { $($name: $type,)* }

        impl Functions {
            fn find() -> Result<Self, Refusal> {
                // SAFETY: these are their types in QEMU 10.0, whose plugin interface has been asked for.
                Ok(unsafe { Self { $($name: std::mem::transmute::<*mut c_void, $type>(symbol($symbol)?),)* } })
            }
        }
    };
}

functions! {
    accelerator: c"cpus_get_accel", unsafe extern "C" fn() -> *mut c_void;
    get_clock: c"cpus_get_virtual_clock", unsafe extern "C" fn() -> i64;
    set_clock: c"cpus_set_virtual_clock", unsafe extern "C" fn(i64);
    get_ticks: c"cpus_get_elapsed_ticks", unsafe extern "C" fn() -> i64;
    get_cpu: c"qemu_get_cpu", unsafe extern "C" fn(c_int) -> *mut c_void;
    is_idle: c"cpu_thread_is_idle", unsafe extern "C" fn(*mut c_void) -> bool;
    all_idle: c"all_cpu_threads_idle", unsafe extern "C" fn() -> bool;
    leave: c"cpu_exit", unsafe extern "C" fn(*mut c_void);
    stop: c"cpu_pause", unsafe extern "C" fn(*mut c_void);
    resume: c"cpu_resume", unsafe extern "C" fn(*mut c_void);
    is_stopped: c"cpu_is_stopped", unsafe extern "C" fn(*mut c_void) -> bool;
    is_running: c"runstate_is_running", unsafe extern "C" fn() -> bool;
    until_timer_ns: c"qemu_clock_deadline_ns_all", unsafe extern "C" fn(c_int, c_int) -> i64;
    advance: c"qemu_clock_advance_virtual_time", unsafe extern "C" fn(i64) -> i64;
    call_between_turns: c"async_run_on_cpu", unsafe extern "C" fn(*mut c_void, Between, i64);
    has_lock: c"bql_locked", unsafe extern "C" fn() -> bool;
    lock: c"bql_lock_impl", unsafe extern "C" fn(*const c_char, c_int);
    unlock: c"bql_unlock", unsafe extern "C" fn();
}

/// What QEMU calls for a CPU when no code of the guest runs, with a word that was passed along.
type Between = unsafe extern "C" fn(*mut c_void, i64);

/// What QEMU's threads wait with until a condition is signalled: the condition, the lock that they have meanwhile
/// given back, and where in QEMU that is.
type Wait = unsafe extern "C" fn(*mut c_void, *mut c_void, *const c_char, c_int);

/// QEMU's own, and what is done before it waits.
static WAIT: OnceLock<(Functions, Wait)> = OnceLock::new();

unsafe extern "C" fn wait(condition: *mut c_void, lock: *mut c_void, file: *const c_char, line: c_int) {
    let Some((functions, wait)) = WAIT.get() else { return };
    if !RUNS_CPUS.get() || !functions.jump_when_idle() {
        // SAFETY: it is QEMU's own, with what QEMU has passed.
        unsafe { wait(condition, lock, file, line) }
    }
}

thread_local! {
    /// Whether this thread runs the guest's CPUs.
    static RUNS_CPUS: Cell<bool> = const { Cell::new(false) };
}

/// The guest's clock, taken over.
pub(crate) struct Time {
    functions: Functions,
    /// QEMU's pointer to the CPU that a thread runs.
    current: *const *mut c_void,
    cpus: Vec<*mut c_void>,
    begin_ns: u64,
}

impl Time {
    /// Finds what a clock needs that begins at a time. QEMU is not asked to give its own away, as plugins may: the machine
    /// could not be written into a file then.
    ///
    /// # Errors
    /// A build of QEMU whose clock cannot be taken over.
    pub(crate) fn new(begin_ns: u64) -> Result<Self, Refusal> {
        Ok(Self { functions: Functions::find()?, current: std::ptr::null(), cpus: Vec::new(), begin_ns })
    }

    /// Takes the clock over. The first CPU is about to start on this thread; `own_ticks` tells the time of the CPU that
    /// it runs.
    ///
    /// # Errors
    /// A build of QEMU that does not ask the functions that were put into its table.
    pub(crate) fn begin(&mut self, own_ticks: fn() -> i64) -> Result<(), Refusal> {
        RUNS_CPUS.set(true);
        self.current = symbol(c"current_cpu")?.cast();
        // SAFETY: the table is QEMU's own, is written to by nobody else while CPUs start, and has room for more than
        // is touched in each of its builds.
        unsafe {
            let table = (self.functions.accelerator)().cast::<u8>().add(TABLE).cast::<[usize; 3]>();
            if *table != [0; 3] {
                return Err(Refusal::Clock);
            }
            let functions = self.functions;
            NOW_NS.store(self.begin_ns as i64 + (functions.get_clock)(), Ordering::Relaxed);
            *table =
                [now_ns as *const () as usize, set_now_ns as *const () as usize, ticks as *const () as usize];
            let later = NOW_NS.load(Ordering::Relaxed) + 1;
            (functions.set_clock)(later);
            if [(functions.get_clock)(), (functions.get_ticks)(), NOW_NS.load(Ordering::Relaxed)]
                != [later; 3]
            {
                *table = [0; 3];
                return Err(Refusal::Clock);
            }
        }
        TICKS.store(own_ticks as *mut c_void, Ordering::Relaxed);
        // SAFETY: a variable of type `Wait`, which QEMU's threads read anew for each wait. This is the thread that runs
        // CPUs.
        unsafe {
            let all_wait = AtomicPtr::from_ptr(symbol(c"qemu_cond_wait_func")?.cast());
            let own: Wait = std::mem::transmute::<*mut c_void, Wait>(all_wait.load(Ordering::Relaxed));
            WAIT.get_or_init(|| (self.functions, own));
            all_wait.store(wait as *mut c_void, Ordering::Relaxed);
        }
        Ok(())
    }

    /// QEMU is about to start a CPU.
    pub(crate) fn add_cpu(&mut self, cpu: usize) {
        // SAFETY: QEMU has a CPU of this number.
        let cpu = unsafe { (self.functions.get_cpu)(cpu as c_int) };
        self.cpus.push(cpu);
        CPUS.lock().unwrap_or_else(PoisonError::into_inner).push(cpu as usize);
    }

    /// The guest's clock.
    pub(crate) fn now_ns() -> u64 {
        NOW_NS.load(Ordering::Relaxed) as u64
    }

    /// The CPU that this thread runs, if it runs one.
    pub(crate) fn current_cpu(&self) -> Option<usize> {
        if !RUNS_CPUS.get() {
            return None;
        }
        // SAFETY: the pointer belongs to this thread, which is the one that has looked it up.
        let current = unsafe { *self.current };
        self.cpus.iter().position(|cpu| *cpu == current)
    }

    /// Whether a CPU waits for something.
    pub(crate) fn is_idle(&self, cpu: usize) -> bool {
        // SAFETY: the CPU is one that QEMU has named.
        self.cpus.get(cpu).is_none_or(|cpu| unsafe { (self.functions.is_idle)(*cpu) })
    }

    /// Sets the guest's clock as soon as no code of the guest runs. A CPU calls that this thread runs.
    pub(crate) fn set(&self, cpu: usize, ns: u64) {
        // SAFETY: the CPU is one that QEMU has named, and the function is of the type that it calls.
        unsafe { (self.functions.call_between_turns)(self.cpus[cpu], set_between_turns, ns as i64) }
    }

    /// Stops the CPU that this thread runs until the guest's clock has come to a time.
    pub(crate) fn stop(&self, cpu: usize, until_ns: u64) {
        let Functions { stop, resume, .. } = self.functions;
        let cpu = self.cpus[cpu];
        let stopped = Stopped { until_ns: until_ns as i64, cpu: cpu as usize, resume };
        STOPPED.lock().unwrap_or_else(PoisonError::into_inner).push(stopped);
        // SAFETY: the CPU is one that QEMU has named, and runs on this thread.
        unsafe { stop(cpu) }
    }

    /// Has all CPUs go on, wherever the clock is.
    pub(crate) fn resume_all() {
        go_on(i64::MAX);
    }

    /// Lets another CPU have its turn.
    pub(crate) fn leave(&self, cpu: usize) {
        // SAFETY: the CPU is one that QEMU has named.
        unsafe { (self.functions.leave)(self.cpus[cpu]) }
    }
}

/// As `qemu_plugin_update_ns` does, but QEMU's main loop, which that wakes each time, sleeps on where there is nothing to
/// do for it.
unsafe extern "C" fn set_between_turns(_cpu: *mut c_void, ns: i64) {
    if let Some((functions, _)) = WAIT.get() {
        functions.advance_to(ns);
    }
}

/// Whether QEMU has stopped a CPU, as it does with one that asks for the machine to be paused. Its main loop is about to
/// stop the others, at some time of the host's; the guest's has to stand still until then.
fn pauses(functions: &Functions) -> bool {
    let stopped = STOPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let own = |cpu: usize| stopped.iter().any(|stopped| stopped.cpu == cpu);
    let cpus = CPUS.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the CPUs are those that QEMU has named.
    cpus.iter().any(|&cpu| unsafe { (functions.is_stopped)(cpu as *mut c_void) } && !own(cpu))
}

fn first_to_go_on_ns() -> Option<i64> {
    let stopped = STOPPED.lock().unwrap_or_else(PoisonError::into_inner);
    stopped.iter().map(|stopped| stopped.until_ns).min()
}

impl Functions {
    /// Sets the guest's clock, with QEMU's lock.
    fn advance_to(&self, ns: i64) {
        let now_ns = NOW_NS.load(Ordering::Relaxed);
        // SAFETY: with its lock, which this thread has, QEMU allows these calls.
        unsafe {
            let timer_ns = (self.until_timer_ns)(VIRTUAL_CLOCK, ANY_TIMER);
            if timer_ns >= 0 && timer_ns <= ns - now_ns {
                (self.advance)(ns);
            } else if ns > now_ns {
                (self.set_clock)(ns);
            }
        }
    }

    /// When all CPUs wait, has those go on that are the first to: `false` if nobody is, or the guest does not run. Only
    /// on the thread that runs CPUs, which is in nobody's turn then.
    fn jump_when_idle(&self) -> bool {
        // SAFETY: with its lock, which this thread has, QEMU allows these calls.
        unsafe {
            if !(self.has_lock)() || !(self.is_running)() || !(self.all_idle)() {
                return false;
            }
            if pauses(self) {
                return false;
            }
            let now_ns = NOW_NS.load(Ordering::Relaxed);
            let wait_ns = (self.until_timer_ns)(VIRTUAL_CLOCK, ANY_TIMER);
            let timer_ns = (wait_ns >= 0).then(|| now_ns + wait_ns.max(1));
            let Some(ns) = timer_ns.into_iter().chain(first_to_go_on_ns()).min() else { return false };
            if (self.advance)(ns) < ns {
                // There is no timer.
                set_now_ns(ns);
            }
            if (self.all_idle)() {
                (self.unlock)();
                thread::sleep(PAUSE);
                (self.lock)(c"hearth".as_ptr(), line!() as c_int);
            }
        }
        true
    }
}
