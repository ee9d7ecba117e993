//! Whether pages can follow their process to another memory node, and what shows which are used.

use super::{Finding, Root};
use hearth_migration::{Available, Backend, Nodes, available};

pub(super) fn findings(root: &Root) -> Vec<Finding> {
    // Without a topology there is a line that says so.
    Nodes::read(&root.0).ok().map(|nodes| judge(&nodes, &available(&root.0))).into_iter().collect()
}

fn judge(nodes: &Nodes, available: &Available) -> Finding {
    const SUBJECT: &str = "page migration";
    if !nodes.differ() {
        return Finding::ok(SUBJECT, "only one node has memory: no page can be nearer than it is");
    }
    let nodes = nodes.with_memory().len();
    let instead = available.instead_of.join("; ");
    match available.backend {
        Backend::Damon => {
            Finding::ok(SUBJECT, format!("{nodes} nodes have memory; DAMON shows which pages are used"))
        }
        Backend::None => Finding::warning(
            SUBJECT,
            format!("{nodes} nodes have memory; nothing shows which pages are used, so all stay: {instead}"),
            "boot a kernel with CONFIG_DAMON_VADDR and CONFIG_DAMON_SYSFS",
        ),
        other => Finding::warning(
            SUBJECT,
            format!("{nodes} nodes have memory; {} shows which pages are used: {instead}", other.text()),
            "it is coarser and dearer than DAMON",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;
    use std::fs;
    use std::path::Path;

    fn put(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn found(root: &Path) -> Finding {
        findings(&Root(root.to_owned())).pop().unwrap()
    }

    #[test]
    fn what_shows_accesses_is_named_and_what_would_be_better() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(root, "sys/devices/system/cpu/online", "0-1");
        put(root, "sys/devices/system/node/node0/cpulist", "0-1");
        put(root, "sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 1000 kB");
        assert_eq!(found(root).level, Level::Ok);
        assert!(found(root).found.contains("only one node"));

        put(root, "sys/devices/system/node/node1/cpulist", "");
        put(root, "sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 1000 kB");
        let none = found(root);
        assert_eq!(none.level, Level::Warning);
        assert!(none.found.contains("no DAMON") && none.found.contains("all stay"), "{none:?}");

        put(root, "proc/self/clear_refs", "");
        put(root, "proc/self/smaps", "");
        assert!(found(root).found.contains("clear_refs shows"));

        put(root, "sys/kernel/mm/page_idle/bitmap", "");
        assert!(found(root).found.contains("idle page tracking shows"));

        put(root, "sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "0");
        assert_eq!(found(root).level, Level::Ok);
        assert!(found(root).found.contains("2 nodes have memory; DAMON"));
    }
}
