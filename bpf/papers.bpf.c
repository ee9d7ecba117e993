// SPDX-License-Identifier: GPL-2.0-only
/*
 * The papers' schedulers: UNIX of System V and 4.3BSD with one run queue, fixed priorities, virtual
 * time with credits alone, and fragments that are kept whole. They are the scheduler of
 * hearth.bpf.c but for its hooks (hooks.h) and its rule of moving, and are loaded for policies that
 * ask for them.
 */
#define HEARTH_PAPERS
#include "hearth.bpf.c"
#include "papers/decay.h"
#include "papers/run_queue.h"
#include "papers/whole.h"
#include "papers/preempt.h"
#include "papers/begin.h"
