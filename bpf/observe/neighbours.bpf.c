// SPDX-License-Identifier: GPL-2.0-only
/*
 * What ran beside what, and how fast: stretches of each CPU's time with what counters say of them.
 *
 *   CPU 0   |    a    | a | b |      a      |      a stretch ends with a switch, or with a sample
 *   CPU 1   | c |      c      |    idle     |
 *           |<- a period ->|                       of which all CPUs count the same
 *
 * Counters cost time, and a stretch says nothing where its neighbours were not counted. So time is
 * cut into periods, and the lots that observe draws for each interval are drawn for each period
 * here, by its number: CPUs with the same odds count the same periods, and one with less odds
 * counts some of those.
 *
 * neighbours.h has what is told, counters.h the counters, tasks.h and follow.h who is watched.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

char _license[] SEC("license") = "GPL";

#include "observe.h"
#include "neighbours.h"
#include "counters.h"
#include "tasks.h"
#include "follow.h"

/* A period is 2^25 ns, 34 ms. */
#define PERIOD_BIT 25
/* Shorter ones are not told. */
#define LEAST_NS 20000

/* The stretch under way on a CPU. The host reads the first four. */
struct neighbours_cpu {
	u32 slot;
	u32 tid;
	u64 counted;
	struct reading start;
	struct lots lots;
	u64 reads;
};

_Static_assert(offsetof(struct neighbours_cpu, start) == 2 * 8, "mirrored in Rust");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct neighbours_cpu);
} cpus SEC(".maps");

/* Its size is set by the host. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} stretches SEC(".maps");

/* Stretches that found no room. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} lost SEC(".maps");

static __always_inline void one_is_lost(void)
{
	u32 key = 0;
	u64 *count = bpf_map_lookup_elem(&lost, &key);

	if (count)
		++*count;
}

static __always_inline struct neighbours_cpu *this_cpu(void)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&cpus, &key);
}

/* The same for all CPUs in a period, and as good as random from one to the next (murmur's last
 * step). */
static __always_inline u32 lot_of_period(u64 now)
{
	u32 lot = now >> PERIOD_BIT;

	lot = (lot ^ lot >> 16) * 0x85ebca6b;
	lot = (lot ^ lot >> 13) * 0xc2b2ae35;
	return lot ^ lot >> 16;
}

static __always_inline bool is_counted(struct neighbours_cpu *cpu, u64 now)
{
	lots_renew(&cpu->lots, now);
	cpu->lots.begun++;
	return lot_of_period(now) < cpu->lots.odds;
}

/* Reads all counters, and notices now and then what that costs. */
static __always_inline bool cpu_read(struct neighbours_cpu *cpu, struct reading *reading, u64 now)
{
	bool is_there = read_counters(reading, now);

	if (!(cpu->reads++ & 7))
		lots_cost(&cpu->lots, bpf_ktime_get_ns() - now);
	return is_there;
}

static __always_inline void tell(struct neighbours_cpu *cpu, const struct reading *now)
{
	struct neighbours_stretch *stretch;
	/* Nobody counts on an idle CPU. */
	bool is_busy = cpu->slot != NEIGHBOURS_IDLE;

	if (now->ns - cpu->start.ns < LEAST_NS)
		return;
	stretch = bpf_ringbuf_reserve(&stretches, sizeof(*stretch), 0);
	if (!stretch) {
		one_is_lost();
		return;
	}
	stretch->cpu = bpf_get_smp_processor_id();
	stretch->slot = cpu->slot;
	stretch->tid = cpu->tid;
	stretch->start_ns = cpu->start.ns;
	stretch->ns = now->ns - cpu->start.ns;
	stretch->cycles = is_busy ? now->cycles - cpu->start.cycles : 0;
	stretch->instructions = is_busy ? now->instructions - cpu->start.instructions : 0;
	stretch->misses = is_busy ? now->misses - cpu->start.misses : 0;
	bpf_ringbuf_submit(stretch, BPF_RB_NO_WAKEUP);
}

/* The stretch under way ends; the next one is of a task, and counted if its period is. */
static __always_inline void goes_on(struct neighbours_cpu *cpu, u32 slot, u32 tid)
{
	u64 now = bpf_ktime_get_ns();
	struct reading reading = {.ns = now};
	bool was_counted = cpu->counted, counts = is_counted(cpu, now);
	bool ends_busy = was_counted && cpu->slot != NEIGHBOURS_IDLE;
	bool begins_busy = counts && slot != NEIGHBOURS_IDLE;

	if ((ends_busy || begins_busy) && !cpu_read(cpu, &reading, now))
		was_counted = counts = false;
	if (was_counted)
		tell(cpu, &reading);
	cpu->slot = slot;
	cpu->tid = tid;
	cpu->counted = counts;
	cpu->start = reading;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct neighbours_cpu *cpu = this_cpu();
	struct observe_task *task;
	/* The kernel does not list for us those outside of our PID namespace. */
	u32 slot = UNWATCHED_SLOT;

	if (!cpu)
		return 0;
	if (!next->pid) {
		slot = NEIGHBOURS_IDLE;
	} else if (next->flags & PF_KTHREAD) {
		slot = KERNEL_SLOT;
	} else if (next->tgid == observer) {
		slot = NEIGHBOURS_OBSERVER;
	} else {
		task = bpf_task_storage_get(&tasks, next, 0, 0);
		if (task && task->slot != NO_SLOT)
			slot = task->slot;
	}
	goes_on(cpu, slot, next->pid);
	return 0;
}

/* At a fixed rate on every CPU that is not idle. */
SEC("perf_event")
int on_sample(void *context)
{
	struct neighbours_cpu *cpu = this_cpu();

	if (cpu && cpu->start.ns)
		goes_on(cpu, cpu->slot, cpu->tid);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *p)
{
	struct neighbours_cpu *cpu = this_cpu();
	struct observe_task *task;

	task = bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!task || !cpu)
		return 0;
	task->slot = slot_of(p);
	/* The stretch under way belongs to the program that it ends with. */
	cpu->slot = task->slot;
	return 0;
}
