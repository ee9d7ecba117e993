//! Every machine that can be described can be simulated.

use std::sync::Arc;

use hearth_experiments::{Job, Policies, Workload, run_one};
use hearth_machine::{Cache, Holds, Machine, Node};
use hearth_sim::Options;
use proptest::prelude::*;

/// Machines of 4 to 132 CPUs and one to four levels, each private or shared by more CPUs than the one before.
fn machine() -> impl Strategy<Value = Machine> {
    let nodes = prop::collection::vec(prop::sample::select(vec![1_usize, 2, 11]), 1..4);
    let sharing = prop::collection::vec(prop::sample::select(vec![1_usize, 2, 4]), 0..=3);
    let lines = prop::sample::select(vec![32_u64, 64, 128]);
    (nodes, any::<bool>(), sharing, lines).prop_map(|(nodes, is_split, mut sharing, line_bytes)| {
        let cache = |name: &str, holds, level: u32, shared_by| Cache {
            name: name.into(),
            holds,
            size_bytes: 4096 << (3 * level),
            ways: 4,
            shared_by,
            is_parted: false,
            latency_cycles: 4 * level,
        };
        sharing.sort_unstable();
        let mut caches = match is_split {
            true => vec![cache("L1i", Holds::Instructions, 1, 1), cache("L1d", Holds::Data, 1, 1)],
            false => vec![cache("L1", Holds::Both, 1, 1)],
        };
        let outer = (2..).zip(sharing);
        caches.extend(
            outer.map(|(level, shared_by)| cache(&format!("L{level}"), Holds::Both, level, shared_by)),
        );
        let mut machine = Machine::load("server-2s").expect("a preset");
        machine.nodes = nodes.iter().map(|cpus| Node { cpus: 4 * cpus, memory_bytes: 1 << 30 }).collect();
        if nodes.len() == 1 {
            machine.memory.remote_cycles = machine.memory.local_cycles;
            machine.memory.remote_modified_cycles = machine.memory.local_cycles;
            machine.memory.link_bytes_per_s = None;
            machine.kernel.page_move = Default::default();
        }
        machine.line_bytes = line_bytes;
        machine.caches = caches;
        machine
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_machine_that_is_accepted_runs(machine in machine(), policy in prop::sample::select(vec!["standard", "fair"])) {
        machine.check().expect("possible");
        let job = Job {
            machine: Arc::new(Machine::parse(&machine.to_toml(), "test").expect("readable")),
            workload: Workload::parse("spin+matrix+chat:rooms=1,users=2,messages=10").expect("programs"),
            policies: Policies::load(policy).expect("a preset"),
            scale: 0.01,
            seed: 1,
            options: Options::default(),
            sampled: None,
        };
        let run = run_one(&job, None).expect("a run");
        prop_assert!(run.result.elapsed_ns > 0);
    }
}
