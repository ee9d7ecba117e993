/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why the kernel let go of the scheduler: kept for the host to tell.
 */
#ifndef HEARTH_EXIT_H
#define HEARTH_EXIT_H

#include "state.h"

struct hearth_exit exited;
/* The kernel's account of every CPU and task, if there was an error. */
char exit_dump[HEARTH_DUMP_BYTES];

/* The kernel found an error, and gives its account, before it ends the scheduler. */
static __always_inline void exit_look(struct scx_dump_ctx *dump)
{
	exited.at = dump->at_jiffies;
}

static __always_inline void exit_record(struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(exited.reason, sizeof(exited.reason), info->reason);
	bpf_probe_read_kernel_str(exited.message, sizeof(exited.message), info->msg);
	bpf_probe_read_kernel_str(exit_dump, sizeof(exit_dump), info->dump);
	exited.code = info->exit_code;
	/* Last: the host looks at it first. */
	__sync_fetch_and_add(&exited.kind, info->kind);
}

#endif
