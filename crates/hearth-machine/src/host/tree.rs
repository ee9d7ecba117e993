//! A host's topology as a tree of text.

use termtree::Tree;

use super::sysfs::show_cpus;
use super::{HostCache, HostNode, HostTopology};
use crate::units::Hertz;

impl HostTopology {
    /// The topology as text: nodes, below each the caches that cores share, below those the cores.
    /// Cores that are alike share a line. Notes come last. Ends with a line feed.
    pub fn tree(&self) -> String {
        let mut tree = Tree::new(self.title());
        tree.extend(self.nodes.iter().map(|node| self.node_tree(node)));
        let mut text = tree.to_string();
        for note in &self.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        text
    }

    fn title(&self) -> String {
        let model = self.model.as_deref().unwrap_or("this host");
        let clock = self.cpus.iter().filter_map(|cpu| cpu.clock_hz).max();
        let clock = clock.map_or_else(String::new, |hz| format!(", {}", Hertz(hz)));
        let (cpus, cores) = (self.cpus.len(), self.cores().len());
        let threads = if cpus == cores { String::new() } else { format!(" in {cores} cores") };
        let offline = match self.offline.as_slice() {
            [] => String::new(),
            offline => format!(", {} offline", show_cpus(offline)),
        };
        format!("{model}{clock}: {}{threads}{offline}", count(cpus, "CPU"))
    }

    fn node_tree(&self, node: &HostNode) -> Tree<String> {
        let memory = match node.memory_bytes {
            None => "memory not known".to_owned(),
            Some(0) => "no memory".to_owned(),
            Some(bytes) => show_bytes(bytes),
        };
        let cpus = if node.cpus.is_empty() { ", no CPU" } else { "" };
        let mut packages: Vec<u64> = self
            .cpus
            .iter()
            .filter(|cpu| node.cpus.contains(&cpu.id))
            .filter_map(|cpu| cpu.package)
            .collect();
        packages.dedup();
        let package = match packages.as_slice() {
            [package] => format!(", package {package}"),
            _ => String::new(),
        };
        let mut tree = Tree::new(format!("node {}: {memory}{package}{cpus}", node.id));
        tree.extend(self.branches(&node.cpus, u64::MAX));
        tree
    }

    /// What is inside the given CPUs: the widest caches below `level` that several cores share,
    /// and the cores that are in none of those.
    fn branches(&self, cpus: &[usize], level: u64) -> Vec<Tree<String>> {
        let mut rest = cpus.to_vec();
        let mut trees = Vec::new();
        for cache in self.caches.iter().rev().filter(|cache| cache.level < level) {
            let inside: Vec<usize> = rest.iter().copied().filter(|cpu| cache.cpus.contains(cpu)).collect();
            if inside.is_empty() || !self.is_shared(cache) {
                continue;
            }
            rest.retain(|cpu| !inside.contains(cpu));
            let mut tree = Tree::new(format!("{}: {}", shape(cache), show_cpus(&inside)));
            tree.extend(self.branches(&inside, cache.level));
            trees.push((inside[0], tree));
        }
        for (first, line) in self.core_lines(&rest) {
            trees.push((first, Tree::new(line)));
        }
        trees.sort_by_key(|(first, _)| *first);
        trees.into_iter().map(|(_, tree)| tree).collect()
    }

    fn is_shared(&self, cache: &HostCache) -> bool {
        self.cores().iter().filter(|core| cache.cpus.contains(&core[0])).count() > 1
    }

    /// One line for each run of cores that are alike, with the first CPU of the run.
    fn core_lines(&self, cpus: &[usize]) -> Vec<(usize, String)> {
        let cores: Vec<&[usize]> = self.cores().into_iter().filter(|core| cpus.contains(&core[0])).collect();
        let described: Vec<(&[usize], String)> =
            cores.into_iter().map(|core| (core, self.private_caches(core))).collect();
        let alike = |a: &(&[usize], String), b: &(&[usize], String)| a.0.len() == b.0.len() && a.1 == b.1;
        described.chunk_by(alike).map(|run| (run[0].0[0], core_line(run))).collect()
    }

    fn private_caches(&self, core: &[usize]) -> String {
        let own = |cache: &&HostCache| cache.cpus.contains(&core[0]) && !self.is_shared(cache);
        let shapes: Vec<String> = self.caches.iter().filter(own).map(shape).collect();
        shapes.join(", ")
    }
}

fn core_line(run: &[(&[usize], String)]) -> String {
    let mut cpus: Vec<usize> = run.iter().flat_map(|(core, _)| core.iter().copied()).collect();
    cpus.sort_unstable();
    let threads = match run[0].0.len() {
        1 => String::new(),
        threads => format!(" of {threads} threads"),
    };
    let caches = match run[0].1.as_str() {
        "" => String::new(),
        caches => format!(": {caches}"),
    };
    format!("{}{threads}, {}{caches}", count(run.len(), "core"), show_cpus(&cpus))
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn shape(cache: &HostCache) -> String {
    let ways = cache.ways.map_or_else(String::new, |ways| format!(" {ways}-way"));
    let size = cache.size_bytes.map_or_else(|| "of unknown size".to_owned(), show_bytes);
    format!("{} {size}{ways}", cache.name())
}

/// With one decimal where it is not whole.
fn show_bytes(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0x4000_0000.. => (1_u64 << 30, "GiB"),
        0x10_0000.. => (1 << 20, "MiB"),
        _ => (1 << 10, "KiB"),
    };
    let tenths = bytes.saturating_mul(10) / unit;
    if tenths.is_multiple_of(10) {
        return format!("{} {name}", tenths / 10);
    }
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}
