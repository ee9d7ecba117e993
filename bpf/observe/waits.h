/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For how long tasks wait for a CPU, and behind whom.
 *
 * A task waits from when it wakes up, or is taken off its CPU though it could go on, until it runs.
 * What others had of the CPU where it then runs, meanwhile, is put down to them, as far as the last
 * turns there go back.
 */
#ifndef HEARTH_OBSERVE_WAITS_H
#define HEARTH_OBSERVE_WAITS_H

#define TURNS 8

/* Somebody had a CPU. */
struct turn {
	u64 since;
	u64 until;
	u32 who;
	u32 pad;
};

/* The last turns of a CPU. */
struct turns {
	struct turn turn[TURNS];
	u64 count;
};

struct who {
	u32 waits;
	u32 by;
};

/* Its size is set by the host. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct who);
	__type(value, struct observe_behind);
} behind SEC(".maps");

static __always_inline struct observe_behind *behind_of(u32 waits, u32 by)
{
	struct who who = {.waits = waits, .by = by};
	struct observe_behind none = {}, *found = bpf_map_lookup_elem(&behind, &who);

	if (found)
		return found;
	/* Where there is no room this is not told. */
	bpf_map_update_elem(&behind, &who, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&behind, &who);
}

/* As older kernels have it. */
struct task_struct___wide {
	int on_cpu;
} __attribute__((preserve_access_index));

static __always_inline bool runs(struct task_struct *p)
{
	if (bpf_core_field_size(p->on_cpu) == sizeof(int))
		return ((struct task_struct___wide *)p)->on_cpu;
	return p->on_cpu;
}

/* A task that runs is woken in vain: it has not slept yet. */
static __always_inline void wait_begins_awake(struct task_struct *p, u64 now)
{
	struct observe_task *task;

	if (runs(p))
		return;
	task = bpf_task_storage_get(&tasks, p, 0, 0);
	if (!task || task->waits_since)
		return;
	task->waits_since = now;
	task->woke = 1;
}

static __always_inline void wait_begins_taken_off(struct task_struct *p, u64 now)
{
	struct observe_task *task = bpf_task_storage_get(&tasks, p, 0, 0);

	if (!task)
		return;
	task->waits_since = now;
	task->woke = 0;
}

static __always_inline void turn_ends(struct turns *turns, u32 who, u64 since, u64 until)
{
	struct turn *turn = &turns->turn[turns->count++ % TURNS];

	turn->since = since;
	turn->until = until;
	turn->who = who;
}

/* Puts a wait down to those who had the CPU. */
static __always_inline void put_down(const struct turns *turns, u32 slot, u64 from)
{
	struct observe_behind *behind;

	for (u32 back = 1; back <= TURNS; back++) {
		const struct turn *turn = &turns->turn[(turns->count - back) % TURNS];

		if (turn->until <= from)
			return;
		behind = behind_of(slot, turn->who);
		if (!behind)
			return;
		behind->waits += back == 1;
		behind->waited_ns += turn->until - (turn->since > from ? turn->since : from);
	}
}

/* It runs. */
static __always_inline void wait_ends(struct observe_task *task, struct observe_waits *waits,
				      const struct turns *turns, u64 now)
{
	/* It may have been woken by another CPU, whose clock is a little ahead. */
	u64 ns = now > task->waits_since ? now - task->waits_since : 0;

	if (task->woke) {
		waits->woken++;
		waits->woken_ns += ns;
		waits->woken_lengths[length_bin(ns)]++;
	} else {
		waits->taken_off++;
		waits->taken_off_ns += ns;
	}
	put_down(turns, task->slot, task->waits_since);
	task->waits_since = 0;
}

#endif
