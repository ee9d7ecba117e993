/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which tasks are watched, and to which program each belongs.
 *
 * A task that is watched has storage. It is made outside of the switch path: for tasks that are
 * there by the iterator, for new ones when they are forked. A program is a name: that of the file
 * that the process last executed, or, where each task is wanted, the task's own with its number,
 * or, where control groups are wanted, the group's. Each name has a slot; when the slots are used
 * up the last one takes what is left.
 */
#ifndef HEARTH_OBSERVE_TASKS_H
#define HEARTH_OBSERVE_TASKS_H

#define PF_KTHREAD 0x00200000
#define ANCESTORS 64
#define CGROUP_LEVELS 32
/* A child of ours that has not executed its program yet. */
#define NO_SLOT 0xffffffffU
/* In the place of a program's slot: tasks of the kernel, and those that are not watched. */
#define KERNEL_SLOT 0xfffffffdU
#define UNWATCHED_SLOT 0xfffffffcU

struct observe_task {
	u32 slot;
	/* One more than the CPU where it ran last; 0 if it has not run yet. */
	u32 last_cpu;
	/* Since when it waits for a CPU; 0 if it does not. */
	u64 waits_since;
	/* Whether that began with a wake-up. */
	u32 woke;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct observe_task);
} tasks SEC(".maps");

struct name {
	char text[16];
	/* The number of the task, or of the group, where those are wanted. */
	u32 number;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct name);
	__type(value, u32);
} slots SEC(".maps");

const volatile u32 scope;
/* The process, or the number of the cgroup. */
const volatile u64 target;
/* The observer's own process, which is not watched. */
const volatile u32 observer;
const volatile bool each_task;
const volatile bool each_cgroup;
const volatile u32 nr_slots = 64;
/* Slots in use; the last one is for all programs that found none. */
u32 used_slots;
u64 forks;

static __always_inline u32 slot_of_name(const struct name *name)
{
	u32 slot, *found = bpf_map_lookup_elem(&slots, name);

	if (found)
		return *found;
	slot = __sync_fetch_and_add(&used_slots, 1);
	if (slot >= nr_slots - 1)
		return nr_slots - 1;
	bpf_map_update_elem(&slots, name, &slot, BPF_NOEXIST);
	found = bpf_map_lookup_elem(&slots, name);
	return found ? *found : nr_slots - 1;
}

static __always_inline u32 slot_of(struct task_struct *p)
{
	struct name name = {};

	if (each_task) {
		bpf_probe_read_kernel(name.text, sizeof(name.text), p->comm);
		name.number = p->pid;
	} else if (each_cgroup) {
		/* The host has the whole path; the last part stays when the group has gone. */
		bpf_probe_read_kernel_str(name.text, sizeof(name.text),
					  BPF_CORE_READ(p, cgroups, dfl_cgrp, kn, name));
		name.number = BPF_CORE_READ(p, cgroups, dfl_cgrp, kn, id);
	} else {
		bpf_probe_read_kernel(name.text, sizeof(name.text), p->group_leader->comm);
	}
	return slot_of_name(&name);
}

static __always_inline bool descends(struct task_struct *p, bool itself)
{
	struct task_struct *ancestor = p;

	if (BPF_CORE_READ(p, tgid) == target)
		return itself;
	for (int i = 0; i < ANCESTORS; i++) {
		u32 tgid;

		ancestor = BPF_CORE_READ(ancestor, real_parent);
		tgid = BPF_CORE_READ(ancestor, tgid);
		if (tgid == target)
			return true;
		if (tgid <= 1)
			return false;
	}
	return false;
}

/* A cgroup's first member is its css, whose parent is the css of the parent. */
static __always_inline bool below_target(struct cgroup *cgroup)
{
	for (int i = 0; i < CGROUP_LEVELS; i++) {
		if (!cgroup)
			return false;
		if (BPF_CORE_READ(cgroup, kn, id) == target)
			return true;
		cgroup = (struct cgroup *)BPF_CORE_READ(cgroup, self.parent);
	}
	return false;
}

static __always_inline bool is_target(struct task_struct *p)
{
	if (BPF_CORE_READ(p, flags) & PF_KTHREAD)
		return false;
	switch (scope) {
	case OBSERVE_HOST:
		return BPF_CORE_READ(p, tgid) != observer;
	case OBSERVE_CHILDREN:
		return descends(p, false);
	case OBSERVE_PROCESS:
		return descends(p, true);
	default:
		return below_target(BPF_CORE_READ(p, cgroups, dfl_cgrp));
	}
}

#endif
