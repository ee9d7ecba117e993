//! The guest whose kernel sees a machine's CPUs, last-level caches and memory nodes.
//!
//! A kernel under emulation learns of a last-level cache by its socket, and of memory nodes by its
//! firmware. So it can be told of machines whose nodes are alike, and of one level of caches that
//! CPUs share; private levels need no telling. Anything else is refused, for a scheduler that is
//! told less than the caches know would be judged by a machine that it never saw.

use crate::EmulateError;
use hearth_guest::Shape;
use hearth_machine::Machine;

/// As many CPUs as a guest can have.
const MOST_CPUS: usize = 128;
/// What a node's share of memory is at least: the kernel keeps some of its own on each.
const LEAST_NODE_MIB: usize = 128;

/// The CPUs of the guest.
///
/// # Errors
/// A machine that the guest's kernel cannot be told of.
pub fn shape(machine: &Machine) -> Result<Shape, EmulateError> {
    let refuse = |what: String| Err(EmulateError::Machine { machine: machine.name.clone(), what });
    let cpus = machine.cpus();
    if cpus > MOST_CPUS {
        return refuse(format!(
            "it has {cpus} CPUs, and a guest at most {MOST_CPUS}; name a smaller machine"
        ));
    }
    let with_cpus = machine.nodes.iter().take_while(|node| node.cpus > 0).count();
    let per_node = machine.nodes[0].cpus;
    let unlike = |node: usize| machine.nodes[node].cpus != per_node;
    if let Some(node) = (0..with_cpus).find(|&node| unlike(node)) {
        let other = machine.nodes[node].cpus;
        return refuse(format!(
            "node 0 has {per_node} CPUs and node {node} has {other}; a guest's nodes have as many CPUs each"
        ));
    }
    if per_node == 0 || machine.nodes[with_cpus..].iter().any(|node| node.cpus > 0) {
        return refuse("a node without CPUs is before one with CPUs; name those without CPUs last".into());
    }
    let domain = machine.domain_cpus();
    let told = |shared_by: usize| shared_by == 1 || shared_by == domain;
    if let Some(cache) = machine.caches.iter().find(|cache| !told(cache.shared_by)) {
        return refuse(format!(
            "{} is shared by {} CPUs and the last level by {domain}; a guest's kernel can be told of the \
             last level only; make {} private",
            cache.name, cache.shared_by, cache.name
        ));
    }
    Ok(Shape {
        nodes: with_cpus,
        caches_per_node: per_node / domain,
        cores_per_cache: domain,
        threads_per_core: 1,
    })
}

/// The memory of each node in MiB: `total_mib` in the proportions of the machine's nodes, for the
/// guest's kernel and files need what they need, whatever the machine had.
pub fn node_memory_mib(machine: &Machine, total_mib: usize) -> Vec<usize> {
    let all: u64 = machine.nodes.iter().map(|node| node.memory_bytes).sum();
    let part = |bytes: u64| (total_mib as f64 * bytes as f64 / all as f64) as usize;
    let size = |bytes: u64| if bytes == 0 { 0 } else { part(bytes).max(LEAST_NODE_MIB) };
    machine.nodes.iter().map(|node| size(node.memory_bytes)).collect()
}

/// How far the guest's nodes are apart, as firmware tells it: 10 for a node's own memory, and for another's as many
/// times that as it takes longer.
pub fn node_distance(machine: &Machine) -> u8 {
    let memory = &machine.memory;
    let times = f64::from(memory.remote_cycles) / f64::from(memory.local_cycles.max(1));
    // 10 would be the own node's, and 255 one that cannot be reached.
    (10.0 * times).round().clamp(11.0, 254.0) as u8
}

/// How far the guest's clock is to move with each instruction, for the guest to execute as many in a
/// second as the machine's busy CPUs do, a cycle each. A guest's clock moves by 1 ns at least: see
/// [`slowness`].
pub fn ns_per_instruction(machine: &Machine) -> f64 {
    1e9 / (machine.clock_hz as f64 * machine.cpus() as f64)
}

/// How many times fewer instructions a busy CPU of the guest executes in a second of its own clock
/// than one of the machine: how many times too often a tick comes, and too early a time slice ends.
pub fn slowness(machine: &Machine) -> f64 {
    (1.0 / ns_per_instruction(machine)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str) -> Machine {
        Machine::load(name).unwrap()
    }

    fn told(name: &str) -> (usize, usize, usize) {
        let shape = shape(&machine(name)).unwrap();
        (shape.nodes, shape.caches_per_node, shape.cores_per_cache)
    }

    fn refused(change: impl FnOnce(&mut Machine)) -> String {
        let mut machine = machine("server-2s");
        change(&mut machine);
        shape(&machine).unwrap_err().to_string()
    }

    #[test]
    fn every_machine_that_comes_with_hearth_can_be_told() {
        assert_eq!(told("dash-16"), (4, 4, 1));
        assert_eq!(told("chiplet-64"), (1, 8, 8));
        assert_eq!(told("server-2s"), (2, 1, 16));
        for (name, _) in hearth_machine::presets() {
            assert_eq!(shape(&machine(name)).unwrap().cpus(), machine(name).cpus(), "{name}");
        }
    }

    #[test]
    fn a_machine_that_a_guest_cannot_be_is_refused() {
        assert!(refused(|machine| machine.nodes[0].cpus = 128).contains("144 CPUs"));
        assert!(refused(|machine| machine.nodes[1].cpus = 8).contains("node 1 has 8"));
        assert!(refused(|machine| machine.nodes[0].cpus = 0).contains("last"));
        let text = refused(|machine| machine.caches[2].shared_by = 2);
        assert!(text.contains("L2 is shared by 2 CPUs and the last level by 16"), "{text}");
    }

    #[test]
    fn nodes_without_cpus_come_last() {
        let mut machine = machine("server-2s");
        machine.nodes.push(hearth_machine::Node { cpus: 0, memory_bytes: machine.nodes[0].memory_bytes });
        assert_eq!(shape(&machine).unwrap().nodes, 2);
        assert_eq!(node_memory_mib(&machine, 3072), [1024; 3]);
    }

    #[test]
    fn memory_is_in_the_machines_proportions() {
        let mut machine = machine("server-2s");
        machine.nodes[1].memory_bytes = 3 * machine.nodes[0].memory_bytes;
        assert_eq!(node_memory_mib(&machine, 2048), [512, 1536]);
        assert_eq!(node_memory_mib(&machine, 100), [LEAST_NODE_MIB; 2]);
        machine.nodes[0].memory_bytes = 0;
        assert_eq!(node_memory_mib(&machine, 2048), [0, 2048]);
    }

    #[test]
    fn nodes_are_as_far_as_their_memory_is_slow() {
        assert_eq!(["server-2s", "dash-16"].map(|name| node_distance(&machine(name))), [16, 34]);
        let mut odd = machine("server-2s");
        odd.memory.remote_cycles = odd.memory.local_cycles;
        assert_eq!(node_distance(&odd), 11);
        odd.memory.local_cycles = 1;
        assert_eq!(node_distance(&odd), 254);
    }

    #[test]
    fn a_slow_machine_runs_at_its_speed_and_a_fast_one_as_fast_as_can_be() {
        assert!((ns_per_instruction(&machine("dash-16")) - 1.89).abs() < 0.01);
        assert_eq!(slowness(&machine("dash-16")), 1.0);
        assert_eq!(slowness(&machine("chiplet-64")), 192.0);
    }
}
