//! What programs can get, for those who ask from outside.

use crate::cgroups;
use crate::observe::{Following, Observer};
use crate::pages::{Folder, Found, all_folders, own_folder};
use crate::reason::{Limits, numbers};
use crate::steady::{Number, Steady};
use hearth_hints::page::{Page, Why};
use hearth_host::clock::now_ns;
use hearth_host::task;
use serde::Serialize;
use std::time::{Duration, Instant};

/// For how long it is looked what is used.
const LOOK: Duration = Duration::from_millis(200);
/// Steps after which the rule has forgotten that it has just begun.
const STEPS: usize = 4;

/// The machine, and what programs can get of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct View {
    /// CPUs that are online.
    pub cpus: usize,
    /// CPUs that are used by what does not follow.
    pub others_use: f64,
    /// Whether control groups above may have quotas that cannot be seen from here, as in a container.
    pub hides_quotas: bool,
    /// Those that follow, and the one that was asked for.
    pub programs: Vec<Program>,
}

/// What one program can get.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Program {
    /// Its process.
    pub pid: i32,
    /// The first 15 bytes of its name.
    pub name: String,
    /// The number.
    pub cpus: u32,
    /// The same before it was made whole.
    pub share: f64,
    /// What keeps it from being more: `machine`, `mask`, `quota`, `share`, `want`.
    pub why: &'static str,
    /// CPUs that it may run on.
    pub mask: usize,
    /// The least quota of its cgroup and those above, in CPUs.
    pub quota: Option<f64>,
    /// What it would use at most, if it says so.
    pub want: Option<u32>,
    /// Whether it has a page, so that it can be told.
    pub follows: bool,
    /// Why it does not do what it is told; 0 if it does.
    pub hands_off: u32,
    /// Whether somebody told it this number; else it is what would be told.
    pub told: bool,
    /// What in it does as it is told.
    pub runtimes: Vec<&'static str>,
}

/// Looks at the machine for 200 ms: at all followers that this user may see, and at this process.
pub fn look(pid: Option<i32>) -> View {
    let folders = match rustix::process::geteuid().is_root() && std::env::var_os("HEARTH_DIR").is_none() {
        true => all_folders(),
        false => Folder::open(&own_folder()).into_iter().collect(),
    };
    let found: Vec<Found> = folders.iter().flat_map(Folder::pages).collect();
    let mut following: Vec<Following> = found.iter().map(Found::following).collect();
    if let Some(pid) = pid.filter(|pid| found.iter().all(|found| found.pid != *pid)) {
        let process = crate::machine::Process::now(pid);
        following.extend(process.map(|now| Following { id: (pid, now.start), want: 0, told: 0 }));
    }
    let mut observer = Observer::thorough();
    observer.look(Instant::now(), &following);
    std::thread::sleep(LOOK);
    let look = observer.look(Instant::now(), &following);
    let mut steady = Steady::default();
    let mut said = Vec::new();
    for _ in 0..STEPS {
        said = numbers(look.clone(), |look| steady.step(look));
    }
    let page = |pid: i32| found.iter().find(|found| found.pid == pid).map(|found| found.page);
    let programs = following
        .iter()
        .zip(said)
        .map(|(following, (number, limits))| program(following, page(following.id.0), &number, &limits))
        .collect();
    View {
        cpus: look.demand.masks[0].len(),
        others_use: observer.others_use(),
        hides_quotas: cgroups::are_some_hidden(),
        programs,
    }
}

fn program(following: &Following, page: Option<Page>, number: &Number, limits: &Limits) -> Program {
    let pid = following.id.0;
    let told = page.filter(|page| page.is_told(now_ns()));
    let why = told.and_then(|page| Why::of(page.why)).unwrap_or_else(|| limits.why(number));
    Program {
        pid,
        name: task::name_of(pid),
        cpus: told.map_or(number.cpus, |page| page.cpus),
        share: told.map_or(number.share, |page| f64::from(page.milli) / 1000.0),
        why: why_name(why),
        mask: limits.mask,
        quota: Some(limits.quota).filter(|quota| quota.is_finite()),
        want: Some(following.want).filter(|want| *want > 0),
        follows: page.is_some(),
        hands_off: page.map_or(0, |page| page.state),
        told: told.is_some(),
        runtimes: page.map(|page| page.runtimes().collect()).unwrap_or_default(),
    }
}

fn why_name(why: Why) -> &'static str {
    match why {
        Why::Machine => "machine",
        Why::Mask => "mask",
        Why::Quota => "quota",
        Why::Share => "share",
        Why::Want => "want",
    }
}
