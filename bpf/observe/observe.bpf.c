// SPDX-License-Identifier: GPL-2.0-only
/*
 * Observes the kernel's own scheduler: dispatch intervals, effective time slices, moves, and misses
 * in the first and in later parts of intervals. Nothing is sent: everything is summed per CPU and
 * program, and read when the observation ends.
 *
 * observe.h has the words, counters.h the counters, tasks.h and follow.h who is watched, sums.h the
 * arithmetic, waits.h for whom tasks wait.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

char _license[] SEC("license") = "GPL";

#include "observe.h"
#include "counters.h"
#include "sums.h"
#include "tasks.h"
#include "follow.h"
#include "waits.h"
#include "reasons.h"

const volatile u32 domain_of[OBSERVE_MAX_CPUS];
const volatile u32 node_of[OBSERVE_MAX_CPUS];

/* The interval under way on a CPU, and the effective time slice that it belongs to. */
struct observe_cpu {
	struct observe_cpu_time time;
	/* Since when the current task runs, and whose time it is. */
	u64 since;
	u32 slot;
	u32 kind;
	u32 before;
	u8 counted;
	u8 first_ended;
	u8 later_began;
	u8 paired;
	/* Counters at the start, and where the current later part began. */
	struct reading start;
	struct reading later;
	/* The first part, once it has ended. */
	struct reading first;
	struct lots lots;
	/* The slice: its task, its program, its time so far. */
	u32 slice_pid;
	u32 slice_slot;
	u64 slice_ns;
	struct turns turns;
};

enum kind { KIND_UNKNOWN, KIND_IDLE, KIND_KERNEL, KIND_OTHER, KIND_WATCHED };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct observe_cpu);
} cpus SEC(".maps");

/* Its size is set by the host. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, struct observe_program);
} programs SEC(".maps");

static __always_inline struct observe_cpu *this_cpu(void)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&cpus, &key);
}

/* Reads all counters, and notices now and then what that costs. */
static __always_inline void cpu_read(struct observe_cpu *cpu, struct reading *reading, u64 now)
{
	u64 ns;

	if (!read_counters(reading, now))
		cpu->counted = false;
	if (cpu->time.reads++ & 7)
		return;
	ns = bpf_ktime_get_ns() - now;
	lots_cost(&cpu->lots, ns);
	cpu->time.read_ns = cpu->lots.cost_ns;
}

static __always_inline void reading_since(struct reading *part, const struct reading *now,
					  const struct reading *then)
{
	part->ns = now->ns - then->ns;
	part->instructions = now->instructions - then->instructions;
	part->misses = now->misses - then->misses;
	part->cycles = now->cycles - then->cycles;
}

static __always_inline void first_part_ends(struct observe_cpu *cpu, struct observe_sums *sums,
					    const struct reading *now)
{
	if (cpu->first_ended || cpu->before >= OBSERVE_BEFORES)
		return;
	reading_since(&cpu->first, now, &cpu->start);
	sums_add(&sums[cpu->before], &cpu->first);
	cpu->first_ended = true;
}

static __always_inline void
later_part_ends(struct observe_cpu *cpu, struct observe_program *program, const struct reading *now)
{
	struct reading part;
	u32 bin;

	if (!cpu->later_began)
		return;
	bin = bin_from(cpu->later.ns - cpu->start.ns, OBSERVE_LATER_BIT, OBSERVE_LATER);
	reading_since(&part, now, &cpu->later);
	if (bin < OBSERVE_LATER)
		sums_add(&program->later[bin], &part);
	if (!cpu->first_ended || cpu->paired || cpu->before >= OBSERVE_BEFORES)
		return;
	pairs_add(&program->pairs[cpu->before], &cpu->first, &part);
	cpu->paired = true;
}

static __always_inline void slice_ends(struct observe_cpu *cpu)
{
	struct observe_program *program;
	u32 slot = cpu->slice_slot;

	if (slot == NO_SLOT || !cpu->slice_ns)
		return;
	program = bpf_map_lookup_elem(&programs, &slot);
	if (!program)
		return;
	program->slices++;
	program->slice_ns += cpu->slice_ns;
	program->slice_lengths[length_bin(cpu->slice_ns)]++;
}

static __always_inline void interval_ends(struct observe_cpu *cpu, u64 now, u32 why,
					  const struct reading *reading)
{
	struct observe_program *program;
	u64 ns = now - cpu->since;
	u32 slot = cpu->slot;

	cpu->slice_ns += ns;
	program = bpf_map_lookup_elem(&programs, &slot);
	if (!program)
		return;
	program->interval_ns += ns;
	program->interval_lengths[length_bin(ns)]++;
	if (why < OBSERVE_ENDS)
		program->ends[why]++;
	if (cpu->before < OBSERVE_BEFORES)
		program->befores[cpu->before]++;
	if (cpu->counted) {
		later_part_ends(cpu, program, reading);
		first_part_ends(cpu, program->whole, reading);
	}
}

static __always_inline u32 what_was_before(struct observe_cpu *cpu, struct observe_task *task,
					   u32 pid, u32 here)
{
	u32 last = task->last_cpu - 1;

	if (!task->last_cpu)
		return OBSERVE_START;
	if (last == here)
		return cpu->slice_pid == pid ? OBSERVE_SAME : OBSERVE_OTHERS;
	last &= OBSERVE_MAX_CPUS - 1;
	here &= OBSERVE_MAX_CPUS - 1;
	if (domain_of[last] == domain_of[here])
		return OBSERVE_MOVED_DOMAIN;
	return node_of[last] == node_of[here] ? OBSERVE_MOVED_NODE : OBSERVE_MOVED_REMOTE;
}

static __always_inline void time_passes(struct observe_cpu *cpu, u64 now)
{
	u64 ns = now - cpu->since;

	switch (cpu->kind) {
	case KIND_IDLE:
		cpu->time.idle_ns += ns;
		break;
	case KIND_KERNEL:
		cpu->time.kernel_ns += ns;
		break;
	case KIND_OTHER:
		cpu->time.other_ns += ns;
		break;
	case KIND_WATCHED:
		cpu->time.watched_ns += ns;
		break;
	}
}

/* Who has the CPU, as tasks that wait see it; NO_SLOT if it is nobody. */
static __always_inline u32 who_has(const struct observe_cpu *cpu)
{
	switch (cpu->kind) {
	case KIND_WATCHED:
		return cpu->slot;
	case KIND_KERNEL:
		return KERNEL_SLOT;
	case KIND_OTHER:
		return UNWATCHED_SLOT;
	default:
		return NO_SLOT;
	}
}

/* A task that is not the kernel's takes the CPU: another effective slice, unless it was here last.
 */
static __always_inline void user_begins(struct observe_cpu *cpu, struct task_struct *next, u64 now)
{
	struct observe_task *task = bpf_task_storage_get(&tasks, next, 0, 0);
	u32 pid = next->pid, here = bpf_get_smp_processor_id();
	u32 slot = task ? task->slot : NO_SLOT;
	struct observe_program *program;

	cpu->kind = task ? KIND_WATCHED : KIND_OTHER;
	if (task) {
		cpu->before = what_was_before(cpu, task, pid, here);
		task->last_cpu = here + 1;
		program = bpf_map_lookup_elem(&programs, &slot);
		if (program && task->waits_since)
			wait_ends(task, &program->waits, &cpu->turns, now);
	}
	if (cpu->slice_pid != pid || cpu->slice_slot != slot) {
		slice_ends(cpu);
		cpu->slice_pid = pid;
		cpu->slice_slot = slot;
		cpu->slice_ns = 0;
	}
	cpu->slot = slot;
	cpu->counted = slot != NO_SLOT && lots_draw(&cpu->lots, now);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct observe_cpu *cpu = this_cpu();
	u64 now = bpf_ktime_get_ns();
	u32 had, why = OBSERVE_ENDS;
	struct observe_behind *who;
	struct reading reading = {};
	bool was_counted;

	if (!cpu)
		return 0;
	cpu->time.switches++;
	time_passes(cpu, now);
	had = who_has(cpu);
	if (had != NO_SLOT)
		turn_ends(&cpu->turns, had, cpu->since, now);
	was_counted = cpu->counted;
	if (was_counted)
		cpu_read(cpu, &reading, now);
	if (cpu->kind == KIND_WATCHED && cpu->slot != NO_SLOT) {
		why = why_it_ends(preempt, prev, next, now);
		interval_ends(cpu, now, why, &reading);
		if (why <= OBSERVE_YIELDED)
			wait_begins_taken_off(prev, now);
	}
	cpu->since = now;
	cpu->counted = false;
	cpu->slot = NO_SLOT;
	if (!next->pid)
		cpu->kind = KIND_IDLE;
	else if (next->flags & PF_KTHREAD)
		cpu->kind = KIND_KERNEL;
	else
		user_begins(cpu, next, now);
	if (why == OBSERVE_PREEMPTED && (who = behind_of(had, who_has(cpu))))
		who->preempted++;
	if (!cpu->counted)
		return 0;
	if (!was_counted)
		cpu_read(cpu, &reading, now);
	cpu->start = reading;
	cpu->first_ended = false;
	cpu->later_began = false;
	cpu->paired = false;
	return 0;
}

/* At a fixed rate on every CPU, at no fixed place of an interval. */
SEC("perf_event")
int on_sample(void *context)
{
	struct observe_cpu *cpu = this_cpu();
	struct observe_program *program;
	struct reading now, so_far;
	u32 bin, slot;

	if (!cpu || !cpu->counted)
		return 0;
	slot = cpu->slot;
	program = bpf_map_lookup_elem(&programs, &slot);
	if (!program)
		return 0;
	cpu_read(cpu, &now, bpf_ktime_get_ns());
	reading_since(&so_far, &now, &cpu->start);
	bin = bin_from(so_far.ns, 13, OBSERVE_CURVE);
	if (cpu->before < OBSERVE_BEFORES && bin < OBSERVE_CURVE)
		point_add(&program->curve[cpu->before][bin], &so_far);
	later_part_ends(cpu, program, &now);
	if (so_far.ns >= OBSERVE_FIRST_PART_NS)
		first_part_ends(cpu, program->first, &now);
	if (so_far.ns >= OBSERVE_LATER_NS) {
		cpu->later = now;
		cpu->later_began = true;
	}
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *p)
{
	u64 flags = scope == OBSERVE_HOST ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0;
	struct observe_task *task = bpf_task_storage_get(&tasks, p, 0, flags);
	struct observe_cpu *cpu = this_cpu();

	if (!task || !cpu)
		return 0;
	task->slot = slot_of(p);
	task->last_cpu = bpf_get_smp_processor_id() + 1;
	if (cpu->slice_pid != p->pid)
		return 0;
	/* The interval under way belongs to the program that it ends with. */
	cpu->slot = task->slot;
	cpu->slice_slot = task->slot;
	cpu->before = OBSERVE_START;
	return 0;
}
