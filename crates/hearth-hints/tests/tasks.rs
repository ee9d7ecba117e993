//! Tasks of executors, many to a thread: each is in its own fragment.

#![allow(clippy::unwrap_used)]

use hearth_hints::{enter, fragment, within};

#[test]
fn a_future_is_in_its_fragment_whenever_it_runs_and_its_thread_in_none_after() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).build().unwrap();
    let task = |shard: u64| async move {
        for _ in 0..50 {
            assert_eq!(fragment(), shard);
            tokio::task::yield_now().await;
        }
        let inner = async { (fragment(), tokio::task::yield_now().await, fragment()) };
        let (before, (), after) = within(shard + 1000, inner).await;
        assert_eq!((before, after, fragment()), (shard + 1000, shard + 1000, shard));
        shard
    };
    let tasks: Vec<_> = (1..40).map(|shard| runtime.spawn(within(shard, task(shard)))).collect();
    let none = runtime.spawn(async {
        for _ in 0..50 {
            assert_eq!(fragment(), 0);
            tokio::task::yield_now().await;
        }
    });
    runtime.block_on(async {
        for (shard, task) in (1..40).zip(tasks) {
            assert_eq!(task.await.unwrap(), shard);
        }
        none.await.unwrap();
    });
}

#[test]
fn a_future_that_panics_or_is_dropped_leaves_its_fragment() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    assert!(runtime.block_on(runtime.spawn(within(7, async { panic!("as it is to") }))).is_err());
    let forever = runtime.spawn(within(8, std::future::pending::<()>()));
    forever.abort();
    assert!(runtime.block_on(forever).unwrap_err().is_cancelled());
    assert_eq!(runtime.block_on(runtime.spawn(async { fragment() })).unwrap(), 0);
}

/// While it waits, a thread of rayon runs tasks that others have begun.
#[test]
fn a_task_that_waits_for_another_is_in_its_own_fragment_again() {
    fn both(shard: u64) {
        let _here = enter(shard);
        if shard < 1 << 9 {
            rayon::join(|| both(2 * shard), || both(2 * shard + 1));
        }
        assert_eq!(fragment(), shard);
    }
    both(1);
    assert_eq!(rayon::broadcast(|_| fragment()).iter().sum::<u64>(), 0);
}
