//! Hosts of several shapes, as sysfs describes them, read from folders made for the purpose.

mod hosts;

use std::fs;
use std::path::Path;

use hearth_machine::host::{self, HostCache, HostCpu, HostError, HostNode, HostTopology};
use hearth_machine::{Holds, Machine};
use hosts::{Fixture, holes_without_caches, hybrid_laptop, many_cores, memory_only_nodes, two_sockets};
use proptest::prelude::*;

/// The tree, and the machine with its notes; checks that the machine is one.
fn describe(host: &HostTopology) -> String {
    let made = host.to_machine().expect("a machine");
    made.machine.check().expect("possible");
    let text = made.machine.to_toml();
    assert_eq!(Machine::parse(&text, "host").expect("readable"), made.machine);
    assert_eq!(made.host_cpus.len(), made.machine.cpus());
    let cut = text.find("[memory]").unwrap_or(text.len());
    let kernel = text.find("[tlb]").unwrap_or(text.len());
    format!(
        "{}\nCPUs {:?}\n{}\n\n{}",
        host.tree(),
        made.host_cpus,
        made.notes.join("\n"),
        &text[..cut.max(kernel)]
    )
}

#[test]
fn a_hybrid_laptop_becomes_alike_cores() {
    insta::assert_snapshot!(describe(&hybrid_laptop().read()));
}

#[test]
fn threads_are_folded_to_cores_and_sockets_become_nodes() {
    insta::assert_snapshot!(describe(&two_sockets().read()));
}

#[test]
fn holes_and_missing_caches_and_clocks_are_filled_with_stated_assumptions() {
    insta::assert_snapshot!(describe(&holes_without_caches().read()));
}

#[test]
fn a_node_of_memory_alone_stays_and_an_empty_one_goes() {
    insta::assert_snapshot!(describe(&memory_only_nodes().read()));
}

#[test]
fn of_more_than_512_cores_whole_cache_domains_of_each_node_are_kept() {
    insta::assert_snapshot!(describe(&many_cores().read()));
}

#[test]
fn a_cache_across_nodes_becomes_one_for_each() {
    let fixture = two_sockets();
    for cpu in 0..16 {
        fixture.write(&format!("sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list"), "0-15");
    }
    let made = fixture.read().to_machine().expect("a machine");
    assert_eq!(made.machine.domain_cpus(), 4);
    assert!(
        made.notes.contains(&"L3 lies across nodes: each node has its own here".to_owned()),
        "{:?}",
        made.notes
    );
}

#[test]
fn a_host_without_node_folders_is_one_node() {
    let fixture = Fixture::new("0-1");
    fixture.write("proc/meminfo", "MemTotal:        2097152 kB\nMemFree: 1 kB");
    let host = fixture.read();
    assert_eq!(host.nodes.len(), 1);
    assert_eq!(host.nodes[0].memory_bytes, Some(2 << 30));
    assert_eq!(host.nodes[0].cpus, [0, 1]);
    host.to_machine().expect("a machine");
}

#[test]
fn a_cpu_on_no_node_is_counted_to_the_first() {
    let fixture = holes_without_caches();
    fixture.node(0, "0,2", 2048, "10");
    let host = fixture.read();
    assert_eq!(host.nodes[0].cpus, [0, 2, 7]);
    assert!(host.notes.iter().any(|note| note == "no node holds CPU 7: counted to node 0"));
}

#[test]
fn nodes_are_read_whatever_their_numbers_sizes_and_cpus() {
    let fixture = two_sockets();
    fs::remove_dir_all(fixture.root().join("sys/devices/system/node")).expect("nodes");
    fixture.node(0, "0-3,8-11", 64 * 1024, "10 21 17 28");
    fixture.node(4, "4-7,12-15", 0, "21 10 28 17");
    fixture.node(8, "", 256 * 1024, "17 28 10 28");
    fixture.write("sys/devices/system/node/node9/cpulist", "");
    let host = fixture.read();
    let shape: Vec<_> = host
        .nodes
        .iter()
        .map(|node| (node.id, node.cpus.len(), node.memory_bytes.map(|bytes| bytes >> 30)))
        .collect();
    assert_eq!(shape, [(0, 8, Some(64)), (4, 8, Some(0)), (8, 0, Some(256)), (9, 0, None)]);
    assert_eq!(host.nodes[1].distances, [21, 10, 28, 17]);
    assert_eq!(host.nodes[3].distances, [0; 0]);
    host.to_machine().expect("a machine").machine.check().expect("possible");
}

#[test]
fn a_folder_that_is_no_linux_host_is_an_error() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let error = host::read(folder.path()).expect_err("empty");
    assert!(matches!(error, HostError::NoCpus { .. }));
    assert!(error.to_string().ends_with("is this Linux, and is /sys mounted?"), "{error}");
}

#[test]
fn a_malformed_list_is_an_error_that_names_the_file() {
    let fixture = Fixture::new("0-");
    let error = host::read(fixture.root()).expect_err("malformed").to_string();
    assert!(
        error.ends_with(
            "cpu/online: \"0-\" is not a list such as `0-3,8`, of numbers below 65536; the file should come from a Linux kernel"
        ),
        "{error}"
    );
}

#[test]
fn nonsense_in_the_files_of_a_cache_leaves_the_cache_out() {
    let fixture = two_sockets();
    for file in ["size", "level", "type"] {
        fixture.write(&format!("sys/devices/system/cpu/cpu0/cache/index3/{file}"), "99999999999999999999G");
    }
    fixture.read().to_machine().expect("a machine");
}

#[test]
fn this_host_can_be_read_and_simulated() {
    let host = host::read(Path::new("/")).expect("this host");
    assert!(host.tree().contains("node 0"));
    let made = host.to_machine().expect("a machine");
    assert_eq!(Machine::parse(&made.machine.to_toml(), "host").expect("readable"), made.machine);
}

/// For each node its memory, and for each of its cores the threads and the group of its L2 and L3.
type Shape = Vec<(u64, Vec<(usize, u64, u64)>)>;

fn shapes() -> impl Strategy<Value = Shape> {
    let core = (1_usize..4, 0_u64..4, 0_u64..3);
    prop::collection::vec((0_u64..1 << 38, prop::collection::vec(core, 0..40)), 1..5)
}

/// A host of that shape; `sizes` are those of the levels' caches, by group, in KiB.
fn host_of(shape: &Shape, sizes: &[u64], ways: Option<u64>) -> HostTopology {
    let mut host = HostTopology { page_bytes: 4096, ..HostTopology::default() };
    for (id, (memory_bytes, cores)) in shape.iter().enumerate() {
        let first = host.cpus.len();
        for (threads, middle, outer) in cores {
            let core_cpus: Vec<usize> = (host.cpus.len()..host.cpus.len() + threads).collect();
            for (level, group) in [(1, 0), (2, *middle), (3, *outer)] {
                let size_bytes = sizes[(level + group as usize) % sizes.len()] << 10;
                let holds = if level == 1 { Holds::Data } else { Holds::Both };
                let cpus = core_cpus.clone();
                host.caches.push(HostCache {
                    level: level as u64,
                    holds,
                    size_bytes: Some(size_bytes),
                    ways,
                    line_bytes: Some(64),
                    cpus,
                });
            }
            for id in core_cpus.clone() {
                host.cpus.push(HostCpu { id, core_cpus: core_cpus.clone(), package: None, clock_hz: None });
            }
        }
        let cpus = (first..host.cpus.len()).collect();
        host.nodes.push(HostNode { id, cpus, memory_bytes: Some(*memory_bytes), distances: vec![10, 31] });
    }
    host.caches.sort_by_key(|cache| cache.level);
    host
}

proptest! {
    #[test]
    fn every_host_with_a_cpu_becomes_a_possible_machine(
        shape in shapes(),
        sizes in prop::collection::vec(1_u64..100_000, 1..5),
        ways in prop::option::of(1_u64..100),
    ) {
        let host = host_of(&shape, &sizes, ways);
        prop_assume!(!host.cpus.is_empty());
        let made = host.to_machine().expect("a machine");
        prop_assert_eq!(made.host_cpus.len(), made.machine.cpus());
        prop_assert_eq!(Machine::parse(&made.machine.to_toml(), "host").expect("readable"), made.machine);
        prop_assert!(host.tree().lines().count() > 1);
    }
}

fn domains(fixture: &Fixture) -> Vec<Vec<usize>> {
    fixture.read().domains()
}

#[test]
fn a_cpu_without_caches_leaves_the_domains_of_others_alone_whatever_its_number() {
    for (without, shared, expected) in [(0, "1-2", [vec![0], vec![1, 2]]), (2, "0-1", [vec![0, 1], vec![2]])]
    {
        let fixture = Fixture::new("0-2");
        (0..3).for_each(|cpu| fixture.cpu(cpu, 0, &cpu.to_string(), 0));
        for cpu in (0..3).filter(|cpu| *cpu != without) {
            fixture.caches(cpu, &[(3, "Unified", "8192K", 16, shared)]);
        }
        assert_eq!(domains(&fixture), expected);
    }
}

#[test]
fn an_outer_cache_of_some_cpus_is_their_domain_alone() {
    let fixture = Fixture::new("0-3");
    for cpu in 0..4 {
        let own = cpu.to_string();
        let all = [(2, "Unified", "1024K", 8, own.as_str()), (3, "Unified", "8192K", 16, "2-3")];
        fixture.caches(cpu, if cpu < 2 { &all[..1] } else { &all });
    }
    assert_eq!(domains(&fixture), [vec![0], vec![1], vec![2, 3]]);
    let notes = fixture.read().to_machine().expect("a machine").notes;
    assert!(notes.iter().any(|note| note == "2 of 4 cores have L3: all have it here"), "{notes:?}");
}

#[test]
fn a_split_second_level_is_one_of_both_sizes() {
    let fixture = Fixture::new("0");
    let caches = [
        (1, "Data", "16K", 4, "0"),
        (1, "Instruction", "16K", 4, "0"),
        (2, "Data", "256K", 8, "0"),
        (2, "Instruction", "1024K", 8, "0"),
    ];
    fixture.caches(0, &caches);
    let made = fixture.read().to_machine().expect("a machine");
    assert_eq!(made.machine.caches[2].size_bytes, 1280 << 10);
    let note = "L2 is split: one of 1280 KiB for both is here in its place";
    assert!(made.notes.iter().any(|other| other == note), "{:?}", made.notes);
}

#[test]
fn a_cpu_of_several_nodes_is_counted_to_the_first() {
    let fixture = Fixture::new("0-1");
    fixture.node(0, "0-1", 1024, "10 20");
    fixture.node(1, "0-1", 1024, "20 10");
    let host = fixture.read();
    assert_eq!((host.nodes[0].cpus.as_slice(), host.nodes[1].cpus.len()), (&[0, 1][..], 0));
    assert!(
        host.notes.iter().any(|note| note.starts_with("several nodes hold CPUs 0-1")),
        "{:?}",
        host.notes
    );
}

#[test]
fn nodes_that_do_not_tell_their_memory_share_what_others_leave_of_the_machines() {
    let fixture = Fixture::new("0-1");
    fixture.write("proc/meminfo", "MemTotal: 8388608 kB");
    fixture.write("sys/devices/system/node/node0/cpulist", "0");
    fixture.write("sys/devices/system/node/node1/cpulist", "1");
    let shares = |fixture: &Fixture| -> Vec<Option<u64>> {
        fixture.read().nodes.iter().map(|node| node.memory_bytes.map(|bytes| bytes >> 30)).collect()
    };
    assert_eq!(shares(&fixture), [Some(4), Some(4)]);
    fixture.node(2, "", 2048, "20 20 10");
    assert_eq!(shares(&fixture), [Some(3), Some(3), Some(2)]);
    fs::remove_file(fixture.root().join("proc/meminfo")).expect("file");
    assert_eq!(shares(&fixture), [None, None, Some(2)]);
}

#[test]
fn of_more_than_64_nodes_those_with_cpus_are_kept_and_the_rest_is_told() {
    let fixture = Fixture::new("0-1");
    for node in 0..65 {
        fixture.node(
            node,
            ["0", "1", ""][[0, 64].iter().position(|with| *with == node).unwrap_or(2)],
            1024,
            "10",
        );
    }
    let made = fixture.read().to_machine().expect("a machine");
    assert_eq!((made.machine.nodes.len(), made.machine.cpus()), (64, 2));
    assert_eq!(made.host_cpus, [0, 1]);
    let note = "64 of 65 nodes are kept, those with CPUs first: a machine has at most 64";
    assert!(made.notes.iter().any(|other| other == note), "{:?}", made.notes);
}

#[test]
fn numbers_beyond_the_last_are_told() {
    let fixture = holes_without_caches();
    fixture.cpu(70_000, 0, "70000", 0);
    fixture.node(70_000, "", 1024, "10");
    let notes = fixture.read().notes;
    for name in ["cpu70000", "node70000"] {
        let note = format!("{name}: left out, for numbers end below 65536");
        assert!(notes.contains(&note), "{notes:?}");
    }
}

#[test]
fn the_clock_is_the_highest_or_that_of_the_name_and_that_of_the_moment_is_told_as_such() {
    let fixture = holes_without_caches();
    let clock = |fixture: &Fixture| fixture.read().cpus[0].clock_hz;
    let cpuinfo =
        |name: &str| fixture.write("proc/cpuinfo", &format!("model name\t: {name}\ncpu MHz\t\t: 800.000"));
    cpuinfo("CPU @ 2.10GHz");
    assert_eq!(clock(&fixture), Some(2_100_000_000));
    cpuinfo("CPU");
    assert_eq!(clock(&fixture), Some(800_000_000));
    assert!(fixture.read().notes.iter().any(|note| note.starts_with("the clock is that of the moment")));
    fixture.cpu(0, 0, "0", 3_000_000);
    assert_eq!(clock(&fixture), Some(3_000_000_000));
}

#[test]
fn control_characters_of_names_do_not_reach_the_terminal() {
    let fixture = holes_without_caches();
    fixture.write("proc/cpuinfo", "model name\t: CPU \u{1b}[31mred\u{7}");
    let host = fixture.read();
    assert_eq!(host.model.as_deref(), Some("CPU ?[31mred?"));
}

#[test]
fn ways_that_nobody_told_are_told_as_assumed() {
    let fixture = Fixture::new("0");
    fixture.caches(0, &[(2, "Unified", "640K", 0, "0")]);
    let host = fixture.read();
    assert_eq!(host.caches[0].ways, None);
    let notes = host.to_machine().expect("a machine").notes;
    assert!(
        notes.iter().any(|note| note == "L2: the number of ways is not known: 10 is assumed"),
        "{notes:?}"
    );
}

#[test]
fn without_caches_the_domains_are_the_sockets_here_and_in_the_machine_made_of_it() {
    let fixture = Fixture::new("0-3");
    for cpu in 0..4 {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        fixture.write(&format!("{folder}/physical_package_id"), "-1");
        fixture.write(&format!("{folder}/core_siblings_list"), if cpu < 2 { "0-1" } else { "2-3" });
    }
    assert_eq!(domains(&fixture), [vec![0, 1], vec![2, 3]]);
    assert_eq!(fixture.read().to_machine().expect("a machine").machine.domain_cpus(), 2);
}

#[test]
fn a_topology_of_nothing_is_refused() {
    let error = HostTopology::default().to_machine().expect_err("nothing").to_string();
    assert!(error.starts_with("this host cannot be simulated: "), "{error}");
}
