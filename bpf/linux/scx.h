/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sched_ext's interface for the BPF build, the same on every kernel from 6.12
 * on: kfuncs that were renamed or added later are weak, and looked for when the
 * scheduler is loaded. The native build takes native/scx.h in its place.
 */
#ifndef HEARTH_LINUX_SCX_H
#define HEARTH_LINUX_SCX_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define ENOMEM 12
#define INT64_MAX 0x7fffffffffffffffll
#define INT64_MIN (-INT64_MAX - 1)

/* The condition of a loop of which the verifier need not see the end: cheaper than bpf_for. */
#define can_loop                                                                          \
	({                                                                                \
		__label__ l_break, l_continue;                                            \
		bool ret = true;                                                          \
		asm volatile goto("1:.byte 0xe5; .byte 0; "                               \
				  ".long ((%l[l_break] - 1b - 8) / 8) & 0xffff; .short 0" \
				  :                                                       \
				  :                                                       \
				  :                                                       \
				  : l_break);                                             \
		goto l_continue;                                                          \
	l_break:                                                                          \
		ret = false;                                                              \
	l_continue:;                                                                      \
		ret;                                                                      \
	})

/* The iterator of bpf_for_each. */
#define BPF_FOR_EACH_ITER (&___it)

/* Set by the host before the scheduler is loaded, and constant from then on: the
 * verifier drops what the policy does not use. */
#define host_constant const volatile

/* A function that the verifier looks at once, by itself, and not again at each call. */
#define verified_alone __noinline

#define BPF_STRUCT_OPS(name, args...) SEC("struct_ops/" #name) BPF_PROG(name, ##args)
#define BPF_STRUCT_OPS_SLEEPABLE(name, args...) SEC("struct_ops.s/" #name) BPF_PROG(name, ##args)

/* Their names until 6.13. */
void scx_bpf_dispatch(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym __weak;
void scx_bpf_dispatch_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
			    u64 enq_flags) __ksym __weak;
bool scx_bpf_consume(u64 dsq_id) __ksym __weak;
bool scx_bpf_dispatch_from_dsq(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id,
			       u64 enq_flags) __ksym __weak;
void scx_bpf_dispatch_from_dsq_set_vtime(struct bpf_iter_scx_dsq *it__iter,
					 u64 vtime) __ksym __weak;
bool scx_bpf_dispatch_vtime_from_dsq(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p,
				     u64 dsq_id, u64 enq_flags) __ksym __weak;

#define scx_bpf_dsq_insert(p, id, slice, flags)                                                \
	(bpf_ksym_exists(scx_bpf_dsq_insert) ? scx_bpf_dsq_insert((p), (id), (slice), (flags)) \
					     : scx_bpf_dispatch((p), (id), (slice), (flags)))

#define scx_bpf_dsq_insert_vtime(p, id, slice, vtime, flags)                      \
	(bpf_ksym_exists(scx_bpf_dsq_insert_vtime)                                \
		 ? scx_bpf_dsq_insert_vtime((p), (id), (slice), (vtime), (flags)) \
		 : scx_bpf_dispatch_vtime((p), (id), (slice), (vtime), (flags)))

#define scx_bpf_dsq_move_to_local(id)                                                 \
	(bpf_ksym_exists(scx_bpf_dsq_move_to_local) ? scx_bpf_dsq_move_to_local((id)) \
						    : scx_bpf_consume((id)))

#define scx_bpf_dsq_move(it, p, id, flags)                                              \
	(bpf_ksym_exists(scx_bpf_dsq_move) ? scx_bpf_dsq_move((it), (p), (id), (flags)) \
					   : scx_bpf_dispatch_from_dsq((it), (p), (id), (flags)))

#define scx_bpf_dsq_move_set_vtime(it, vtime)                \
	(bpf_ksym_exists(scx_bpf_dsq_move_set_vtime)         \
		 ? scx_bpf_dsq_move_set_vtime((it), (vtime)) \
		 : scx_bpf_dispatch_from_dsq_set_vtime((it), (vtime)))

#define scx_bpf_dsq_move_vtime(it, p, id, flags)                    \
	(bpf_ksym_exists(scx_bpf_dsq_move_vtime)                    \
		 ? scx_bpf_dsq_move_vtime((it), (p), (id), (flags)) \
		 : scx_bpf_dispatch_vtime_from_dsq((it), (p), (id), (flags)))

#define scx_bpf_now() (bpf_ksym_exists(scx_bpf_now) ? scx_bpf_now() : bpf_ktime_get_ns())

/* Without a call. */
#define scx_bpf_task_cpu(p) ((s32)(p)->thread_info.cpu)

#define task_process(p) ((u64)(p)->tgid)

/* The id of a task's cgroup. */
static __always_inline u64 task_group(struct task_struct *p)
{
	return BPF_CORE_READ(p, cgroups, dfl_cgrp, kn, id);
}

/* Whether a task has a word in which it declares, which can be read: it is the one that runs. */
static __always_inline bool declares(struct task_struct *p, struct hearth_task *tc)
{
	return tc->word_at && bpf_get_current_task_btf() == p;
}

/* What it declares; 0 if its word is not there. */
static __always_inline u64 declared_number(struct task_struct *p, struct hearth_task *tc)
{
	u64 number = 0;

	if (bpf_probe_read_user(&number, sizeof(number), (void *)tc->word_at))
		return 0;
	return number;
}

/* Who makes a new task, or NULL. */
#define maker_of(args) ((args)->fork ? bpf_get_current_task_btf() : NULL)

/* The first task of a queue, or NULL. */
static __always_inline struct task_struct *dsq_first(u64 dsq_id)
{
	struct task_struct *p;

	if (bpf_ksym_exists(scx_bpf_dsq_peek))
		return scx_bpf_dsq_peek(dsq_id);
	bpf_for_each(scx_dsq, p, dsq_id, 0)
		return p;
	return NULL;
}

/* Whether a task that leaves for another class goes on running: nobody may take its CPU. */
#define keeps_cpu(p) scx_bpf_task_running(p)

/* Whether a task may run only where it is, for a moment: its mask may not say so yet. Of the task
 * that runs this program, the program itself is one reason. */
static __always_inline bool is_migration_disabled(struct task_struct *p)
{
	u32 reasons = p->migration_disabled;

	return reasons > 1 || (reasons == 1 && bpf_get_current_task_btf() != p);
}

/* Calls a kfunc with a text and its numbers. The kernel asks for a text that could be written to.
 */
#define with_numbers(kfunc, format, args...)                      \
	({                                                        \
		static char ___format[] = format;                 \
		unsigned long long ___numbers[___bpf_narg(args)]; \
		___bpf_fill(___numbers, args);                    \
		kfunc(___format, ___numbers, sizeof(___numbers)); \
	})
#define scx_bpf_dump(format, args...) with_numbers(scx_bpf_dump_bstr, format, args)
#define scx_bpf_error(format, args...) with_numbers(scx_bpf_error_bstr, format, args)

/* Interrupts, soft and hard, in the kernel's count of what forbids preemption. */
#define INTERRUPTS 0xffff00

/* That count of a CPU, from 6.15 on. */
extern const int __preempt_count __ksym __weak;

/* Whether this program runs in an interrupt, and the task that runs here has no part in it; also if
 * that cannot be told. */
static __always_inline bool is_in_interrupt(void)
{
	if (!bpf_ksym_exists(&__preempt_count))
		return true;
	return *(const int *)bpf_this_cpu_ptr(&__preempt_count) & INTERRUPTS;
}

static __always_inline void task_set_slice(struct task_struct *p, u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice);
	else
		p->scx.slice = slice;
}

#endif
