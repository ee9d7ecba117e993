/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle CPUs. One that is taken for a task, or to look for work, is claimed: nobody else takes it
 * until it has run something, or has looked and found nothing. An idle CPU that is not claimed is
 * free. Who claims one writes the line of that CPU which a wake-up uses anyway.
 *
 * The idle CPUs of a cell are a mask in a line that these CPUs alone write, when they sleep and
 * wake. Which cells may have idle CPUs is in a line that all read, and that is written seldom: by
 * who looks for one and finds none, and by the next that idles. (The kernel's own mask is one line
 * that all CPUs write.)
 */
#ifndef HEARTH_IDLE_H
#define HEARTH_IDLE_H

#include "places.h"

/* Tasks of a queue that are looked at, of many. */
#define MOST_LOOKS 8

#ifdef HEARTH_PAPERS
#include "papers/idle.h"
#else

/* Threads of a core, beside one. */
#define MOST_SIBLINGS 7

/* In the mask of a cell: of one of its CPUs, the first of which has place 0. */
static __always_inline u64 place_bit(u32 place)
{
	return 1ull << (place & 63);
}

/* The word of all cells that has a cell's bit, and that bit. */
static __always_inline u64 *idle_word(u32 cell)
{
	return &idle_cells.words[cell / 64 & (NR_IDLE_WORDS - 1)];
}

static __always_inline u64 cell_bit(u32 cell)
{
	return 1ull << (cell & 63);
}

/* Whether CPUs of a cell may idle. */
static __always_inline bool may_idle(u32 cell)
{
	return *idle_word(cell) & cell_bit(cell);
}

/* Whether any may. */
static __always_inline bool any_idle(void)
{
	u64 any = 0;
	u32 i;

	for (i = 0; i < NR_IDLE_WORDS; i++)
		any |= idle_cells.words[i];
	return any;
}

/* The CPUs of a cell that idle. Who finds none says so to all, unless one has come to idle
 * meanwhile. */
static __always_inline u64 idle_in(u32 cell)
{
	u64 idle;

	if (!may_idle(cell))
		return 0;
	idle = idle_ctx(cell)->cpus;
	if (idle)
		return idle;
	__sync_fetch_and_and(idle_word(cell), ~cell_bit(cell));
	idle = idle_ctx(cell)->cpus;
	if (idle)
		__sync_fetch_and_or(idle_word(cell), cell_bit(cell));
	return idle;
}

/* A CPU idles; whether it is the first of its cell. */
static __always_inline bool idle_set(s32 cpu)
{
	u32 cell = cell_in(UNDIVIDED, cpu);
	u64 were =
		__sync_fetch_and_or(&idle_ctx(cell)->cpus, place_bit(cpu_ctx(cpu)->place_in_cell));

	if (!may_idle(cell))
		__sync_fetch_and_or(idle_word(cell), cell_bit(cell));
	return !were;
}

static __always_inline void idle_clear(s32 cpu)
{
	__sync_fetch_and_and(&idle_ctx(cell_in(UNDIVIDED, cpu))->cpus,
			     ~place_bit(cpu_ctx(cpu)->place_in_cell));
}

static __always_inline bool is_free(s32 cpu)
{
	return cpu_ctx(cpu)->is_idle && !cpu_ctx(cpu)->claimed;
}

/* Takes a CPU, if it idles and nobody has. One that is about to go idle may not have noted it yet,
 * and looks again when it has (hearth_update_idle). */
static __always_inline bool claim_idle(s32 cpu)
{
	return is_free(cpu) &&
	       !__sync_val_compare_and_swap(&cpu_ctx(cpu)->claimed, CLAIM_NONE, CLAIM_LOOK);
}

/* Whether all threads of a CPU's core are free, too. */
static __always_inline bool is_core_free(s32 cpu)
{
	s32 sibling = sibling_of(cpu);
	u32 i;

	for (i = 0; i < MOST_SIBLINGS && sibling != cpu && can_loop; i++) {
		if (!is_free(sibling))
			return false;
		sibling = sibling_of(sibling);
	}
	return true;
}

#endif

/* Has a CPU that is claimed look for work. */
static __always_inline void kick_idle(s32 cpu)
{
	cpu_ctx(cpu)->claimed = CLAIM_LOOK;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

#endif
