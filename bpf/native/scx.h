/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the builds, for the native one; linux/scx.h is the BPF
 * build's.
 */
#ifndef HEARTH_NATIVE_SCX_H
#define HEARTH_NATIVE_SCX_H

#define ENOMEM 12

/* Set by the host that loads this object. */
#define host_constant volatile

#define verified_alone static
#define can_loop true
#define __arg_nonnull
#define __arg_trusted

#define task_group(p) ((p)->group)
/* An application of the simulated machine. */
#define task_process(p) ((p)->group)

/* What a task declares: the simulated kernel reads its word for it. */
#define declares(p, tc) true
#define declared_number(p, tc) ((p)->declared)

/* Who makes a new task, or NULL. */
#define maker_of(args) ((args)->maker)

#define BPF_STRUCT_OPS(name, args...) name(args)
#define BPF_STRUCT_OPS_SLEEPABLE(name, args...) name(args)

static __always_inline struct task_struct *dsq_first(u64 dsq_id)
{
	return hearth_kernel.dsq_peek(hearth_kernel.self, dsq_id);
}

/* A simulated task leaves for another class when it does not run. */
#define keeps_cpu(p) false

/* Interrupts of the simulated kernel wake nobody as who is about to sleep. */
#define is_in_interrupt() false

static __always_inline bool is_migration_disabled(struct task_struct *p)
{
	return p->migration_disabled > 0;
}

static __always_inline void task_set_slice(struct task_struct *p, u64 slice)
{
	p->scx.slice = slice;
}

#endif
