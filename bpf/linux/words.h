/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The words in which tasks declare the data that they work on (fragments.h): a word lies in the
 * task's own memory. The daemon registers its address, when the task asks for that.
 */
#ifndef HEARTH_LINUX_WORDS_H
#define HEARTH_LINUX_WORDS_H

#include "fragments.h"

SEC("syscall")
int hearth_register(struct hearth_registration *registration)
{
	struct task_struct *p = bpf_task_from_pid(registration->tid);
	struct hearth_task *tc;

	if (!p)
		return 0;
	tc = p->tgid == registration->process ? task_ctx(p) : NULL;
	if (tc) {
		tc->word_at = registration->word_at;
		registration->found = true;
	}
	bpf_task_release(p);
	return 0;
}

/* A task has stopped, and is still the one whose memory is at hand. Attached when the first word is
 * registered; hearth_stopping, which does the same, is for who needs it at each stop. */
SEC("tp_btf/sched_switch")
int BPF_PROG(hearth_switched, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct hearth_task *tc = task_ctx(prev);

	if (tc)
		fragment_stop(prev, tc);
	return 0;
}

#endif
