// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Whether a move pays. It costs microseconds, and more in a virtual machine; what it gains is
 * what the thread needs from enter to leave elsewhere, less what it needs at home. All three are
 * measured while the program runs, in CPU time:
 *
 *	gain >= cost		the move pays for this enter alone
 *	gains missed in a row	when they sum up to LASTING times the cost, the thread seems to be
 *				here for long, and moves
 *
 * What is not known yet is tried: first a move, then a stay; and later one stay in TRIES, for
 * what a stay costs changes with the data.
 */
#include "pays.h"
#include "trial.h"

#define LASTING 4
#define TRIES 64
/* Of a move the kernel's own threads do as much as the thread that moves. */
#define THREADS_TIMES 2

static _Atomic uint32_t move_ns; /* 0: not known */

/* Towards what is usual: what took longer was often disturbed, and counts less, and not as long. */
static void learn(_Atomic uint32_t *usual_ns, uint64_t took_ns)
{
	uint32_t usual = atomic_load_explicit(usual_ns, memory_order_relaxed);
	uint32_t took = took_ns < UINT32_MAX ? (uint32_t)took_ns + 1 : UINT32_MAX;

	if (usual && took < usual)
		took = usual - (usual - took) / 4;
	else if (usual)
		took = usual + (took / 2 < usual ? took - usual : usual) / 16;
	atomic_store_explicit(usual_ns, took, memory_order_relaxed);
}

void hearth_took(struct hearth_home *home, int at_home, uint64_t took_ns, uint64_t enters)
{
	hearth_trial_took(took_ns * enters, enters);
	if (hearth_trial_moves())
		learn(at_home ? &home->home_ns : &home->away_ns, took_ns);
}

void hearth_moved(void)
{
	hearth_trial_moved((uint64_t)THREADS_TIMES * hearth_move_ns());
}

void hearth_move_took(uint64_t took_ns)
{
	learn(&move_ns, took_ns);
}

uint32_t hearth_move_ns(void)
{
	return atomic_load_explicit(&move_ns, memory_order_relaxed);
}

enum hearth_verdict hearth_pays(const struct hearth_home *home, struct hearth_missed *missed)
{
	uint32_t at_home = atomic_load_explicit(&home->home_ns, memory_order_relaxed);
	uint32_t away = atomic_load_explicit(&home->away_ns, memory_order_relaxed);
	uint64_t cost = (uint64_t)THREADS_TIMES * hearth_move_ns(), gain;

	if (!hearth_trial_moves())
		return HEARTH_STAY;
	if (!at_home || !cost)
		return HEARTH_TRY_MOVE;
	if (!away)
		return HEARTH_TRY_STAY;
	gain = away > at_home ? away - at_home : 0;
	missed->gain_ns += gain;
	if (gain < cost && missed->gain_ns < LASTING * cost)
		return HEARTH_STAY;
	missed->gain_ns = 0;
	if (++missed->moves * cost < TRIES * gain)
		return HEARTH_MOVE;
	missed->moves = 0;
	return HEARTH_TRY_STAY;
}
