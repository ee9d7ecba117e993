/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's types, as far as the scheduler uses them, for the native build
 * that the simulated kernel loads. The BPF build takes the kernel's own
 * vmlinux.h in its place.
 */
#ifndef HEARTH_NATIVE_VMLINUX_H
#define HEARTH_NATIVE_VMLINUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;

struct cpumask {
	u64 bits[8];
};

/* task->scx.flags */
enum { SCX_TASK_QUEUED = 1 << 0 };

struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
	u64 runnable_at;
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct task_struct {
	s32 pid;
	s32 tgid;
	u32 cpu;
	s32 on_cpu;
	u32 nr_cpus_allowed;
	u32 migration_disabled;
	u32 flags;
	const struct cpumask *cpus_ptr;
	struct sched_ext_entity scx;
	struct sched_entity se;
	char comm[16];
	u64 group;
	u64 declared;
};

enum {
	SCX_DSQ_LOCAL = 0x8000000000000002ull,
	SCX_ENQ_WAKEUP = 1 << 0,
	SCX_ENQ_REENQ = 1ull << 40,
	SCX_WAKE_SYNC = 1 << 4,
	SCX_KICK_IDLE = 1 << 0,
	SCX_KICK_PREEMPT = 1 << 1,
	SCX_OPS_KEEP_BUILTIN_IDLE = 1 << 0,
	SCX_OPS_ENQ_LAST = 1 << 1,
	SCX_OPS_ENQ_EXITING = 1 << 2,
};

struct scx_init_task_args {
	bool fork;
	/* The kernel's current task, if it forks. */
	struct task_struct *maker;
};

struct scx_cpu_release_args {
	s32 reason;
};

struct scx_exit_info {
	s32 kind;
	s64 exit_code;
	const char *reason;
	const char *msg;
	const char *dump;
};

struct scx_dump_ctx {
	u64 at_jiffies;
};

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cpumask)(struct task_struct *p, const struct cpumask *cpumask);
	void (*update_idle)(s32 cpu, bool idle);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	s32 (*init)(void);
	void (*dump)(struct scx_dump_ctx *dump);
	void (*dump_cpu)(struct scx_dump_ctx *dump, s32 cpu, bool idle);
	void (*dump_task)(struct scx_dump_ctx *dump, struct task_struct *p);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	const char *name;
};

#endif
