//! The control groups that share CPUs: weights and quotas from the one of a process up to the machine.
//! Read below folders, so that tests give it copies.

use crate::demand::{Demand, Group};
use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The weight of a process of nice 0, which is that of a cgroup that nobody has given another.
pub const USUAL_WEIGHT: f64 = 1024.0;

/// More levels than any system has; it bounds what a look costs.
const MAX_DEPTH: usize = 64;

/// The inode of the namespace in which all cgroups can be seen (`PROC_CGROUP_INIT_INO` of the kernel).
const OF_ALL: u64 = 0xEFFF_FFFB;

/// Whether cgroups above what this process can see may have quotas: it is in a namespace of cgroups, as in a
/// container.
pub fn are_some_hidden() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self/ns/cgroup").is_ok_and(|found| found.ino() != OF_ALL)
}

/// The hierarchy that has the CPU controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Where it is mounted.
    mount: PathBuf,
    /// The path, as processes have it, of the cgroup that is mounted there.
    root: PathBuf,
    is_v2: bool,
}

impl Hierarchy {
    /// That of this system, if one is mounted.
    pub fn find() -> Option<Self> {
        let mounts = procfs::process::Process::myself().and_then(|own| own.mountinfo()).ok()?;
        let mut found = None;
        for mount in mounts {
            let is_v2 = mount.fs_type == "cgroup2";
            let is_v1 = mount.fs_type == "cgroup" && mount.super_options.contains_key("cpu");
            if is_v1 || is_v2 && found.is_none() {
                let root = PathBuf::from(&mount.root);
                found = Some(Self { mount: mount.mount_point, root, is_v2 });
            }
            if is_v1 {
                break;
            }
        }
        found
    }

    /// The cgroup of a process, below the mount: empty for the topmost, or one that is not to be seen.
    pub fn of_process(&self, pid: i32) -> PathBuf {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        self.in_text(&text)
    }

    fn in_text(&self, text: &str) -> PathBuf {
        let path = text.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let is_it = if self.is_v2 {
                controllers.is_empty()
            } else {
                controllers.split(',').any(|one| one == "cpu")
            };
            is_it.then_some(Path::new(path))
        });
        let below = path.and_then(|path| path.strip_prefix(&self.root).ok()).unwrap_or(Path::new(""));
        let below = below.strip_prefix("/").unwrap_or(below);
        let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
        if is_plain { below.to_owned() } else { PathBuf::new() }
    }

    /// The weight and the quota in CPUs of a cgroup; `None` if it shares no CPUs by itself.
    fn read(&self, below: &Path) -> Option<(f64, f64)> {
        let folder = self.mount.join(below);
        let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<f64>().ok();
        let (weight, quota) = if self.is_v2 {
            let weight = number("cpu.weight").map(|weight| weight / 100.0 * USUAL_WEIGHT);
            (weight, fs::read_to_string(folder.join("cpu.max")).ok().and_then(|text| v2_quota(&text)))
        } else {
            let quota = number("cpu.cfs_quota_us").zip(number("cpu.cfs_period_us"));
            (number("cpu.shares"), quota.and_then(|(quota, period)| cpus(quota, period)))
        };
        // The topmost of a hierarchy has no weight, and in a container may have a quota.
        let weight = if below.as_os_str().is_empty() { Some(1.0) } else { weight };
        Some((weight?.clamp(1.0, 1e7), quota.unwrap_or(f64::INFINITY)))
    }
}

fn v2_quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    cpus(quota.parse().ok()?, period.parse().ok()?)
}

fn cpus(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Weights and quotas that were read, to be read again when this is dropped.
pub type Read = HashMap<PathBuf, Option<(f64, f64)>>;

/// The groups of a [`Demand`], made as applications name their cgroups.
#[derive(Debug)]
pub struct Groups<'a> {
    hierarchy: Option<&'a Hierarchy>,
    read: &'a mut Read,
    known: HashMap<PathBuf, usize>,
}

impl<'a> Groups<'a> {
    /// Those of an empty demand, which gets the topmost cgroup's quota.
    pub fn new(hierarchy: Option<&'a Hierarchy>, read: &'a mut Read, demand: &mut Demand) -> Self {
        let mut groups = Self { hierarchy, read, known: HashMap::new() };
        if let Some((_, quota)) = groups.read(Path::new("")) {
            demand.groups[0].quota = quota;
        }
        groups
    }

    fn read(&mut self, below: &Path) -> Option<(f64, f64)> {
        if let Some(known) = self.read.get(below) {
            return *known;
        }
        let read = self.hierarchy?.read(below);
        self.read.insert(below.to_owned(), read);
        read
    }

    /// The group of this cgroup, with all that are above it. A cgroup without the CPU controller is its
    /// parent, as the kernel has it.
    pub fn group(&mut self, demand: &mut Demand, below: &Path) -> usize {
        let mut group = 0;
        let mut folder = PathBuf::new();
        for part in below.components().take(MAX_DEPTH) {
            folder.push(part);
            group = match self.known.get(&folder) {
                Some(known) => *known,
                None => {
                    let Some((weight, quota)) = self.read(&folder) else { break };
                    demand.groups.push(Group { parent: group, weight, quota });
                    self.known.insert(folder.clone(), demand.groups.len() - 1);
                    demand.groups.len() - 1
                }
            };
        }
        group
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::Mask;

    fn tree(files: &[(&str, &str)], is_v2: bool) -> (tempfile::TempDir, Hierarchy) {
        let mount = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = mount.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let hierarchy = Hierarchy { mount: mount.path().to_owned(), root: "/".into(), is_v2 };
        (mount, hierarchy)
    }

    fn groups(hierarchy: &Hierarchy, below: &str) -> Vec<Group> {
        let mut demand = Demand::of_machine(Mask::new(0..4));
        let mut read = Read::new();
        let mut groups = Groups::new(Some(hierarchy), &mut read, &mut demand);
        let group = groups.group(&mut demand, Path::new(below));
        assert_eq!(groups.group(&mut demand, Path::new(below)), group, "each cgroup once");
        assert_eq!(group, demand.groups.len() - 1);
        demand.groups
    }

    #[test]
    fn weights_and_quotas_are_those_of_all_that_are_above() {
        let files = [
            ("cpu.max", "max 100000\n"),
            ("a/cpu.weight", "200\n"),
            ("a/cpu.max", "150000 100000\n"),
            ("a/b/cpu.weight", "50\n"),
            ("a/b/cpu.max", "max 100000\n"),
        ];
        let (_mount, hierarchy) = tree(&files, true);
        let expected = [
            Group { parent: 0, weight: 1.0, quota: f64::INFINITY },
            Group { parent: 0, weight: 2048.0, quota: 1.5 },
            Group { parent: 1, weight: 512.0, quota: f64::INFINITY },
        ];
        assert_eq!(groups(&hierarchy, "a/b"), expected);
        assert_eq!(groups(&hierarchy, "a/b/without/controller"), expected);
    }

    #[test]
    fn version_1_has_shares_and_a_quota_below_0_for_none() {
        let files = [
            ("a/cpu.shares", "512\n"),
            ("a/cpu.cfs_quota_us", "-1\n"),
            ("a/cpu.cfs_period_us", "100000\n"),
            ("a/b/cpu.shares", "2\n"),
            ("a/b/cpu.cfs_quota_us", "25000\n"),
            ("a/b/cpu.cfs_period_us", "50000\n"),
        ];
        let (_mount, hierarchy) = tree(&files, false);
        let groups = groups(&hierarchy, "a/b");
        assert_eq!(groups[1], Group { parent: 0, weight: 512.0, quota: f64::INFINITY });
        assert_eq!(groups[2], Group { parent: 1, weight: 2.0, quota: 0.5 });
    }

    #[test]
    fn files_that_say_nonsense_bound_nothing() {
        let files = [("a/cpu.weight", "x\n"), ("b/cpu.weight", "-7\n"), ("b/cpu.max", "nan 0\n")];
        let (_mount, hierarchy) = tree(&files, true);
        assert_eq!(groups(&hierarchy, "a").len(), 1);
        assert_eq!(groups(&hierarchy, "b")[1], Group { parent: 0, weight: 1.0, quota: f64::INFINITY });
    }

    #[test]
    fn a_processs_cgroup_is_found_in_its_hierarchy_and_never_outside() {
        let v2 = Hierarchy { mount: "/x".into(), root: "/".into(), is_v2: true };
        let v1 = Hierarchy { mount: "/x".into(), root: "/docker/1".into(), is_v2: false };
        assert_eq!(v2.in_text("3:cpu:/no\n0::/a.slice/b\n"), Path::new("a.slice/b"));
        assert_eq!(v1.in_text("3:cpuacct,cpu:/docker/1/a\n0::/b\n"), Path::new("a"));
        for outside in ["0::/../../etc\n", "0::\n", "", "0:\n", "4:cpuset:/a\n"] {
            assert_eq!(v2.in_text(outside), Path::new(""));
        }
        assert_eq!(v1.in_text("3:cpu:/docker/2\n"), Path::new(""));
    }
}
