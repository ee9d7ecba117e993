/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * BPF's helpers and sched_ext's kfuncs for the native build: each is one call
 * into the simulated kernel that loaded this object. The BPF build takes
 * libbpf's headers in place of this folder.
 */
#ifndef HEARTH_NATIVE_BPF_HELPERS_H
#define HEARTH_NATIVE_BPF_HELPERS_H

#include <stdio.h>

#define SEC(name)
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __uint(name, value)
#define __type(name, type) type *name

enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 << 0 };

/* A walk over a queue; the tasks that were there when it began. */
struct bpf_iter_scx_dsq {
	void *walk;
	u64 vtime;
};

/* The kernel that hosts this object. */
struct hearth_kernel {
	void *self;
	s32 (*create_dsq)(void *self, u64 dsq_id, s32 node);
	void (*dsq_insert)(void *self, struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags);
	void (*dsq_insert_vtime)(void *self, struct task_struct *p, u64 dsq_id, u64 slice,
				 u64 vtime, u64 enq_flags);
	bool (*dsq_move_to_local)(void *self, u64 dsq_id);
	s32 (*dsq_nr_queued)(void *self, u64 dsq_id);
	struct task_struct *(*dsq_peek)(void *self, u64 dsq_id);
	void *(*dsq_walk_new)(void *self, u64 dsq_id);
	struct task_struct *(*dsq_walk_next)(void *self, void *walk);
	void (*dsq_walk_destroy)(void *self, void *walk);
	bool (*dsq_move)(void *self, void *walk, struct task_struct *p, u64 dsq_id, u64 enq_flags);
	bool (*dsq_move_vtime)(void *self, void *walk, struct task_struct *p, u64 dsq_id, u64 vtime,
			       u64 enq_flags);
	bool (*test_and_clear_cpu_idle)(void *self, s32 cpu);
	s32 (*pick_idle_cpu)(void *self, const struct cpumask *allowed, u64 flags);
	s32 (*select_cpu_dfl)(void *self, struct task_struct *p, s32 prev_cpu, u64 wake_flags,
			      bool *is_idle);
	void (*kick_cpu)(void *self, s32 cpu, u64 flags);
	u64 (*now)(void *self);
	u32 (*smp_processor_id)(void *self);
	u32 (*reenqueue_local)(void *self);
	void *(*task_storage)(void *self, struct task_struct *p, const void *map, u64 size,
			      u64 flags);
	void (*error)(void *self, const char *message);
};

/* Filled in by the host that loads this object. */
struct hearth_kernel hearth_kernel;

/* A map is told from others by its address. */
#define bpf_task_storage_get(map, p, init, flags)                                         \
	((__typeof__((map)->value))hearth_kernel.task_storage(hearth_kernel.self, p, map, \
							      sizeof(*(map)->value), flags))

#define scx_bpf_create_dsq(id, node) hearth_kernel.create_dsq(hearth_kernel.self, id, node)
#define scx_bpf_dsq_insert(p, id, slice, flags) \
	hearth_kernel.dsq_insert(hearth_kernel.self, p, id, slice, flags)
#define scx_bpf_dsq_insert_vtime(p, id, slice, vtime, flags) \
	hearth_kernel.dsq_insert_vtime(hearth_kernel.self, p, id, slice, vtime, flags)
#define scx_bpf_dsq_move_to_local(id) hearth_kernel.dsq_move_to_local(hearth_kernel.self, id)
#define scx_bpf_dsq_nr_queued(id) hearth_kernel.dsq_nr_queued(hearth_kernel.self, id)
#define scx_bpf_test_and_clear_cpu_idle(cpu) \
	hearth_kernel.test_and_clear_cpu_idle(hearth_kernel.self, cpu)
#define scx_bpf_pick_idle_cpu(allowed, flags) \
	hearth_kernel.pick_idle_cpu(hearth_kernel.self, allowed, flags)
#define scx_bpf_select_cpu_dfl(p, prev, flags, is_idle) \
	hearth_kernel.select_cpu_dfl(hearth_kernel.self, p, prev, flags, is_idle)
#define scx_bpf_kick_cpu(cpu, flags) hearth_kernel.kick_cpu(hearth_kernel.self, cpu, flags)
#define scx_bpf_task_cpu(p) ((s32)(p)->cpu)
#define scx_bpf_now() hearth_kernel.now(hearth_kernel.self)
/* A jiffy is a tick, as on Linux. */
#define bpf_jiffies64() (scx_bpf_now() / policy.tick_ns)
#define scx_bpf_reenqueue_local() hearth_kernel.reenqueue_local(hearth_kernel.self)
#define bpf_get_smp_processor_id() hearth_kernel.smp_processor_id(hearth_kernel.self)
#define bpf_cpumask_test_cpu(cpu, mask) ((mask)->bits[(cpu) / 64] >> (cpu) % 64 & 1)
#define scx_bpf_error(args...)                                       \
	({                                                           \
		char ___message[256];                                \
		snprintf(___message, sizeof(___message), args);      \
		hearth_kernel.error(hearth_kernel.self, ___message); \
	})

/* Nobody asks for an account: simulated kernels can be looked into. */
static inline __attribute__((format(printf, 1, 2))) void scx_bpf_dump(const char *format, ...)
{
}

/* Nobody traces: the simulated machine has its own account. */
#define bpf_ringbuf_output(ring, data, size, flags) ((void)(ring), (void)(data), 0)
#define bpf_ktime_get_ns() scx_bpf_now()
#define bpf_probe_read_kernel_str(to, size, from) snprintf(to, size, "%s", from)

static inline void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it)
{
	hearth_kernel.dsq_walk_destroy(hearth_kernel.self, it->walk);
}

#define BPF_FOR_EACH_ITER (&___it)
#define bpf_for_each(type, p, id, flags)                                                        \
	for (struct bpf_iter_scx_dsq ___it __attribute__((cleanup(bpf_iter_scx_dsq_destroy))) = \
		     {hearth_kernel.dsq_walk_new(hearth_kernel.self, id), 0};                   \
	     ((p) = hearth_kernel.dsq_walk_next(hearth_kernel.self, ___it.walk));)
#define scx_bpf_dsq_move(it, p, id, flags) \
	hearth_kernel.dsq_move(hearth_kernel.self, (it)->walk, p, id, flags)

#define bpf_for(i, start, end) for ((i) = (start); (i) < (end); (i)++)

/* Two calls in the kernel: the second takes the vtime that the first set. */
#define scx_bpf_dsq_move_set_vtime(it, to) ((it)->vtime = (to))
#define scx_bpf_dsq_move_vtime(it, p, id, flags) \
	hearth_kernel.dsq_move_vtime(hearth_kernel.self, (it)->walk, p, id, (it)->vtime, flags)

#endif
