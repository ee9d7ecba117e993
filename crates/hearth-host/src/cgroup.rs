//! Control groups: which folder a user means, and which threads are in it.

mod own;

pub use own::Own;

use crate::Error;
use procfs::process::Process;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Files of a cgroup that limit its processes, unless they are empty or begin with `max`.
const LIMITS: [&str; 3] = ["cpu.max", "memory.max", "cpuset.cpus"];

/// How long to wait before a cgroup is removed again: a kernel lets it go of a task that has ended some time after
/// whoever waited for the task was told.
pub(crate) const LETTING_GO: Duration = Duration::from_millis(5);

/// Files that list the threads of a cgroup: version 2, version 1.
const THREAD_LISTS: [&str; 2] = ["cgroup.threads", "tasks"];

/// The folder of a cgroup that is named by its folder (`/sys/fs/cgroup/x`), by its path in the
/// hierarchy (`/system.slice/x.service`), or by its last part alone (`x.service`), if that is
/// unambiguous.
pub fn find(name: &str) -> Result<PathBuf, Error> {
    find_in(&roots().into_iter().map(|(_, root)| root).collect::<Vec<_>>(), name)
}

/// The cgroups of version 2 by the numbers of their folders: paths in the hierarchy, from `/`.
pub fn numbered() -> BTreeMap<u64, PathBuf> {
    let roots = roots().into_iter().filter(|(preference, _)| *preference == VERSION_2);
    let below = roots.flat_map(|(_, root)| {
        let folders = descendants(&root);
        let in_hierarchy = move |folder: PathBuf| {
            let path = Path::new("/").join(folder.strip_prefix(&root).ok()?);
            Some((folder.metadata().ok()?.ino(), path))
        };
        folders.into_iter().filter_map(in_hierarchy)
    });
    below.collect()
}

/// The path in the hierarchy, from `/`, of a cgroup's folder; nothing if it is none of version 2.
pub fn in_hierarchy(folder: &Path) -> Option<PathBuf> {
    let roots = roots().into_iter().filter(|(preference, _)| *preference == VERSION_2);
    roots.into_iter().find_map(|(_, root)| Some(Path::new("/").join(folder.strip_prefix(&root).ok()?)))
}

/// The folder of a cgroup of version 2 by its path in the hierarchy, whether it is there or not.
pub fn folder(path: &Path) -> Option<PathBuf> {
    let (_, root) = roots().into_iter().find(|(preference, _)| *preference == VERSION_2)?;
    Some(root.join(path.strip_prefix("/").unwrap_or(path)))
}

/// The path in the hierarchy where systemd has all of a user, by name or number.
pub fn user_slice(user: &str) -> Option<PathBuf> {
    user_slice_in(&fs::read_to_string("/etc/passwd").unwrap_or_default(), user)
}

fn user_slice_in(passwd: &str, user: &str) -> Option<PathBuf> {
    let number = |line: &str| {
        let mut fields = line.split(':');
        (fields.next()? == user).then_some(())?;
        fields.nth(1)?.parse().ok()
    };
    let number: u32 = user.parse().ok().or_else(|| passwd.lines().find_map(number))?;
    Some(format!("/user.slice/user-{number}.slice").into())
}

/// Where hierarchies are mounted, those first in which a name is looked for first.
fn roots() -> Vec<(u8, PathBuf)> {
    let mounts = Process::myself().and_then(|own| own.mountinfo());
    let mounts = mounts.into_iter().flatten();
    let mut roots: Vec<(u8, PathBuf)> =
        mounts.filter_map(|mount| Some((preference(&mount)?, mount.mount_point))).collect();
    roots.sort();
    roots
}

/// What [`preference`] has for it.
const VERSION_2: u8 = 0;

/// Version 2 first, then systemd's own hierarchy, then that of CPU time.
fn preference(mount: &procfs::process::MountInfo) -> Option<u8> {
    let has = |option: &str| mount.super_options.contains_key(option);
    match mount.fs_type.as_str() {
        "cgroup2" => Some(VERSION_2),
        "cgroup"
            if mount.super_options.get("name").is_some_and(|name| name.as_deref() == Some("systemd")) =>
        {
            Some(1)
        }
        "cgroup" if has("cpu") => Some(2),
        _ => None,
    }
}

fn find_in(roots: &[PathBuf], name: &str) -> Result<PathBuf, Error> {
    let wrong = |problem: String| Error::Cgroup { name: name.to_owned(), problem };
    let parts: Vec<Component<'_>> =
        Path::new(name).components().filter(|part| *part != Component::RootDir).collect();
    if parts.iter().any(|part| !matches!(part, Component::Normal(_))) {
        return Err(wrong("`..` and `.` have no meaning here".into()));
    }
    if roots.is_empty() {
        return Err(wrong("no cgroup hierarchy is mounted; mount -t cgroup2 none EMPTY-FOLDER".into()));
    }
    let inside = |root: &PathBuf| {
        let path = Path::new(name);
        if path.starts_with(root) { path.to_owned() } else { root.join(parts.iter().collect::<PathBuf>()) }
    };
    let whole = || wrong("that is the whole machine; leave it out".into());
    if parts.is_empty() || roots.iter().any(|root| root == Path::new(name)) {
        return Err(whole());
    }
    if let Some(folder) = roots.iter().map(inside).find(|folder| is_cgroup(folder)) {
        return Ok(folder);
    }
    if parts.len() == 1 && !name.starts_with('/') {
        let found: Vec<PathBuf> =
            roots.iter().map(|root| named(root, name)).find(|found| !found.is_empty()).unwrap_or_default();
        match found.as_slice() {
            [] => {}
            [only] => return Ok(only.clone()),
            [one, two, ..] => {
                return Err(wrong(format!(
                    "{} cgroups have this name, such as {} and {}; give the whole path",
                    found.len(),
                    one.display(),
                    two.display()
                )));
            }
        }
    }
    Err(wrong(format!("there is no such cgroup below {}; `systemd-cgls` lists them", roots[0].display())))
}

pub(crate) fn is_cgroup(folder: &Path) -> bool {
    THREAD_LISTS.iter().any(|list| folder.join(list).is_file())
}

fn named(root: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = descendants(root);
    found.retain(|folder| folder.file_name().is_some_and(|last| last == name) && is_cgroup(folder));
    found.sort();
    found
}

/// A cgroup and those below it. One that goes away meanwhile is left out.
pub(crate) fn descendants(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![root.to_owned()];
    let mut next = 0;
    while next < folders.len() {
        let entries = fs::read_dir(&folders[next]).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let below: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
        folders.extend(below);
        next += 1;
    }
    folders
}

/// The threads of a cgroup and of those below it, in no order. Empty if it is gone.
pub fn threads(folder: &Path) -> Vec<i32> {
    let list = |folder: PathBuf| {
        let text = THREAD_LISTS.iter().find_map(|list| fs::read_to_string(folder.join(list)).ok());
        text.map(|text| text.lines().filter_map(|line| line.trim().parse().ok()).collect::<Vec<i32>>())
    };
    descendants(folder).into_iter().filter_map(list).flatten().collect()
}

/// The cgroup of a process, in the hierarchy of version 2 that is mounted here.
pub(crate) fn of_process(root: &Path, pid: i32) -> Result<PathBuf, Error> {
    let wrong = |problem: &str| Error::Process { pid, problem: problem.to_owned() };
    let groups = Process::new(pid).and_then(|process| process.cgroups());
    let groups = groups.map_err(|_| wrong("it is gone"))?;
    let path = groups.0.into_iter().find(|group| group.hierarchy == 0).map(|group| group.pathname);
    let path = path.unwrap_or_default();
    let parts: Vec<_> = Path::new(&path).components().filter(|part| *part != Component::RootDir).collect();
    let folder = parts.iter().fold(root.to_owned(), |folder, part| folder.join(part));
    let is_seen = parts.iter().all(|part| matches!(part, Component::Normal(_))) && folder.is_dir();
    if is_seen { Ok(folder) } else { Err(wrong("its cgroup is outside of this container")) }
}

/// Why a process cannot leave its cgroup without losing what that means for it; nothing if it can.
pub(crate) fn limit(root: &Path, folder: &Path) -> Option<String> {
    let kind = fs::read_to_string(folder.join("cgroup.type")).unwrap_or_default();
    if !matches!(kind.trim(), "" | "domain") {
        return Some(format!("{} has threads apart from their process", folder.display()));
    }
    let groups = folder.ancestors().take_while(|group| group.starts_with(root));
    let mut limits = groups.flat_map(|group| LIMITS.map(|file| group.join(file)));
    let limit = limits.find(|path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().next().is_some_and(|word| word != "max")
    });
    limit.map(|limit| format!("{} limits it, and would no longer", limit.display()))
}

/// Whether a controller is on for the cgroups directly below this one.
pub fn is_on(folder: &Path, controller: &str) -> bool {
    let on = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
    on.split_whitespace().any(|name| name == controller)
}

/// Writes a file of a cgroup, which must be there.
pub(crate) fn write(folder: &Path, file: &str, text: impl AsRef<[u8]>) -> io::Result<()> {
    // In one call, as the kernel wants it.
    let file = OpenOptions::new().write(true).truncate(true).open(folder.join(file));
    file.and_then(|mut file| file.write_all(text.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(cgroups: &[(&str, &str)]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let root = tempfile::tempdir().unwrap();
        for (path, threads) in cgroups {
            fs::create_dir_all(root.path().join(path)).unwrap();
            fs::write(root.path().join(path).join("cgroup.threads"), threads).unwrap();
        }
        let roots = vec![root.path().to_owned()];
        (root, roots)
    }

    fn problem(roots: &[PathBuf], name: &str) -> String {
        find_in(roots, name).unwrap_err().to_string()
    }

    #[test]
    fn a_cgroup_is_found_by_folder_by_path_and_by_its_last_part() {
        let (root, roots) = tree(&[("a.slice/b.service", "12\n13\n"), ("a.slice", "")]);
        let folder = root.path().join("a.slice/b.service");
        for name in [folder.to_str().unwrap(), "/a.slice/b.service", "a.slice/b.service", "b.service"] {
            assert_eq!(find_in(&roots, name).unwrap(), folder, "{name}");
        }
        assert_eq!(threads(&folder), [12, 13]);
        assert_eq!(threads(&root.path().join("a.slice")), [12, 13]);
        assert_eq!(threads(&root.path().join("gone")), Vec::<i32>::new());
    }

    #[test]
    fn a_user_has_a_slice_by_name_or_number() {
        let passwd = "root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\nbad\n";
        let wanted = Some("/user.slice/user-1000.slice".into());
        assert_eq!(user_slice_in(passwd, "ada"), wanted);
        assert_eq!(user_slice_in(passwd, "1000"), wanted);
        assert_eq!(user_slice_in(passwd, "eve"), None);
    }

    #[test]
    fn what_is_no_cgroup_is_told_apart() {
        let (root, roots) = tree(&[("a/x", ""), ("b/x", "")]);
        assert!(problem(&roots, "x").contains("2 cgroups have this name"));
        assert!(problem(&roots, "y").contains("no such cgroup"));
        assert!(problem(&roots, "a/../b").contains("`..`"));
        assert!(problem(&roots, "/").contains("whole machine"));
        assert!(problem(&roots, "").contains("whole machine"));
        assert!(problem(&roots, root.path().to_str().unwrap()).contains("whole machine"));
        assert!(problem(&[], "x").contains("mount"));
    }
}
