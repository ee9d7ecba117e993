/* SPDX-License-Identifier: GPL-2.0-only */
/* Who is watched comes and goes: tasks that are there at first, that are forked, that change
 * cgroups. */
#ifndef HEARTH_OBSERVE_FOLLOW_H
#define HEARTH_OBSERVE_FOLLOW_H

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct observe_task *from, *task;

	if (child->flags & PF_KTHREAD)
		return 0;
	from = bpf_task_storage_get(&tasks, parent, 0, 0);
	if (!from && !(scope == OBSERVE_CHILDREN && parent->tgid == target))
		return 0;
	task = bpf_task_storage_get(&tasks, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!task)
		return 0;
	__sync_fetch_and_add(&forks, 1);
	task->slot = !from ? NO_SLOT : each_task || each_cgroup ? slot_of(child) : from->slot;
	return 0;
}

/* Only where a cgroup is watched, or each is by itself. Tells of a process once, not of each
 * thread. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_attach, struct cgroup *to, const char *path, struct task_struct *p)
{
	struct observe_task *task;

	if (scope == OBSERVE_CGROUP && !below_target(to)) {
		bpf_task_storage_delete(&tasks, p);
		return 0;
	}
	task = bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (task)
		task->slot = slot_of(p);
	return 0;
}

/* Tasks that are there when the observation begins. */
SEC("iter/task")
int each_there(struct bpf_iter__task *context)
{
	struct task_struct *p = context->task;
	struct observe_task *task;

	if (!p || !is_target(p))
		return 0;
	task = bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!task)
		return 0;
	task->slot = slot_of(p);
	/* Where it ran last is not known: its first interval counts as a start. */
	task->last_cpu = 0;
	return 0;
}

#endif
