/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Places: where a task waits, and which CPUs look for it there.
 *
 * CPUs are parted (struct hearth_shape): by the planner, into the sets that the masks of
 * tasks make, or not at all. By its mask a task is for a CPU
 *
 *   shared    it may run on every CPU of that CPU's part. It waits in the shared queue, from
 *             which all of the part take
 *   outgoing  the same, and it may run beyond the part: if CPUs there are idle, they look
 *   stray     it may run on several CPUs, but not on all of the part. It waits in the pinned
 *             queue, where it hides nobody; CPUs that are idle look, and CPUs with fewer that
 *             wait (waits.h)
 *   pinned    it may run on this CPU alone
 *
 * A member of a gang (gangs.h) is a stray of its column.
 *
 * So no busy CPU meets a task that it may not run, and looking for work costs the same
 * whatever the masks. In each cell of a shape, the CPUs of one part and cache domain, tasks
 * are counted while they wait, each in the cell and as what it was when it came; when
 * another shape is published, those of the shape before are counted out there.
 */
#ifndef HEARTH_PLACES_H
#define HEARTH_PLACES_H

#include "fragments.h"

/* Of tasks that wait, in hearth_task.counted: the cell, and as what. */
#define COUNTED_CELL (NR_CELLS - 1)
#define COUNTED_SHARED (NR_CELLS << 0)
#define COUNTED_OUTGOING (NR_CELLS << 1)
#define COUNTED_STRAY (NR_CELLS << 2)
#define COUNTED_MEMBER (NR_CELLS << 3)
#define COUNTED_FRAGMENT (NR_CELLS << 4)

/* The index of the shape that is the whole machine. */
#define UNDIVIDED 0

/* ---- Shapes ---- */

static __always_inline u32 shape_index(u64 word)
{
	return word & (HEARTH_SHAPES - 1);
}

static __always_inline u32 shape_index_before(u64 word)
{
	return word >> HEARTH_PUBLISHED_BEFORE & (HEARTH_SHAPES - 1);
}

static __always_inline struct hearth_shape *shape_at(u32 index)
{
	return &shapes[index & (HEARTH_SHAPES - 1)];
}

static __always_inline u32 part_of(struct hearth_shape *shape, s32 cpu)
{
	return shape->part_of[cpu & (HEARTH_MAX_CPUS - 1)] & (HEARTH_MAX_PARTS - 1);
}

/* The cell of a CPU in a shape, among the cells of all shapes. */
static __always_inline u32 cell_in(u32 index, s32 cpu)
{
	return index << QUEUE_CPU_BITS |
	       (shape_at(index)->cell_of[cpu & (HEARTH_MAX_CPUS - 1)] & (HEARTH_MAX_CPUS - 1));
}

static __always_inline u32 cell_of(s32 cpu)
{
	return cell_in(shape_index(published), cpu);
}

/* The members of a cell: from and up to, and each. */
static __always_inline u32 first_member(u32 cell)
{
	return shape_at(cell >> QUEUE_CPU_BITS)->first[cell & (HEARTH_MAX_CPUS - 1)];
}

static __always_inline u32 end_of_members(u32 cell)
{
	return shape_at(cell >> QUEUE_CPU_BITS)->end[cell & (HEARTH_MAX_CPUS - 1)];
}

static __always_inline s32 member(u32 cell, u32 i)
{
	return shape_at(cell >> QUEUE_CPU_BITS)->member[i & (HEARTH_MAX_CPUS - 1)];
}

/* Each cell of a shape. The first is 0, which the verifier is not to know: it would look at all of
 * them one by one. */
#define for_each_cell(cell, shape) \
	for (cell = (shape)->part_first[0]; cell < (shape)->nr_cells && can_loop; cell++)

/* Parts of which a task may run on every CPU, as bits. */
verified_alone u64 covered_parts(struct task_struct *p __arg_trusted, u32 index)
{
	struct hearth_shape *shape = shape_at(index);
	u64 covers = ~0ull;
	u32 i;

	if (p->nr_cpus_allowed >= topology.nr_cpus)
		return covers;
	bpf_for(i, 0, topology.nr_online) {
		s32 cpu = shape->member[i & (HEARTH_MAX_CPUS - 1)];

		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			covers &= ~(1ull << part_of(shape, cpu));
	}
	return covers;
}

/* ---- What a task is counted as ---- */

/* As what a task is counted that waits for `cpu`; neither as shared nor as stray if it is pinned.
 */
verified_alone u32 counted_as(struct task_struct *p __arg_trusted,
			      struct hearth_task *tc __arg_nonnull, s32 cpu)
{
	u32 index = shape_index(tc->planned);
	struct hearth_shape *shape = shape_at(index);

	if ((p->nr_cpus_allowed == 1 && topology.nr_cpus > 1) || is_migration_disabled(p))
		return tc->row < 0 ? 0 : COUNTED_MEMBER;
	if (tc->row >= 0)
		return cell_in(index, cpu) | COUNTED_STRAY | COUNTED_MEMBER;
	if (is_kept_whole(tc) && fragment_cpu(p, tc) == cpu)
		return COUNTED_FRAGMENT;
	if (!(tc->covers >> part_of(shape, cpu) & 1))
		return cell_in(index, cpu) | COUNTED_STRAY;
	if (shape->nr_parts > 1 && tc->part < 0)
		return cell_in(index, cpu) | COUNTED_SHARED | COUNTED_OUTGOING;
	return cell_in(index, cpu) | COUNTED_SHARED;
}

/* Whether a task that waits in a shared queue is left to the part where it waits, of which a CPU is
 * none. */
static __always_inline bool is_of_other_part(struct hearth_task *tc, s32 cpu)
{
	u32 cell = tc->counted & COUNTED_CELL;
	struct hearth_shape *shape = shape_at(cell >> QUEUE_CPU_BITS);

	if (shape->nr_parts <= 1 || tc->counted & (COUNTED_OUTGOING | COUNTED_STRAY))
		return false;
	return part_of(shape, member(cell, first_member(cell))) != part_of(shape, cpu);
}

/* The cells of a part in whose shared queues tasks wait, as bits. */
static __always_inline u64 *occupied_cells(u32 index, u32 part)
{
	return &part_ctxs[(index & (HEARTH_SHAPES - 1)) * HEARTH_MAX_PARTS + part].occupied;
}

/* A cell's bit. Where a part has more cells than bits, some share one. */
static __always_inline u32 occupied_bit(u32 cell)
{
	return cell & 63;
}

/* The first task comes to a cell, or the last has left. */
verified_alone int cell_occupied(u32 cell)
{
	struct hearth_shape *shape = shape_at(cell >> QUEUE_CPU_BITS);
	u32 part = part_of(shape, member(cell, first_member(cell)));
	u64 *cells = occupied_cells(cell >> QUEUE_CPU_BITS, part);
	u64 bit = 1ull << occupied_bit(cell);

	if (cell_ctx(cell)->waiting <= 0 && shape->part_end[part] - shape->part_first[part] <= 64)
		__sync_fetch_and_and(cells, ~bit);
	/* Also if one came meanwhile. */
	if (cell_ctx(cell)->waiting > 0)
		__sync_fetch_and_or(cells, bit);
	return 0;
}

static __always_inline void count_shared(u32 cell, s64 change)
{
	s64 before = __sync_fetch_and_add(&cell_ctx(cell)->waiting, change);

	if (before == 0 || before + change == 0)
		cell_occupied(cell);
}

static __always_inline void count(u32 counted, s32 queue, s64 change)
{
	struct cell_ctx *cell = cell_ctx(counted & COUNTED_CELL);

	if (counted & COUNTED_FRAGMENT)
		count_of_fragment(queue, change);
	if (counted & COUNTED_MEMBER)
		__sync_fetch_and_add(&queue_ctx(queue)->members, change);
	if (counted & COUNTED_SHARED)
		count_shared(counted & COUNTED_CELL, change);
	if (counted & COUNTED_OUTGOING)
		__sync_fetch_and_add(&cell->outgoing, change);
	if (counted & COUNTED_STRAY) {
		__sync_fetch_and_add(&cell->strays, change);
		__sync_fetch_and_add(&queue_ctx(queue)->strays, change);
	}
}

/* Whether tasks wait in a shape's i-th cell that a CPU of this part may run, as far as counts tell:
 * in the part all that wait in shared queues, in others those that may leave their part. */
static __always_inline bool has_work(u32 index, u32 part, u32 i)
{
	struct cell_ctx *cc = cell_ctx(index << QUEUE_CPU_BITS | (i & (HEARTH_MAX_CPUS - 1)));
	struct hearth_shape *shape = shape_at(index);

	if (cc->waiting <= 0 && cc->strays <= 0)
		return false;
	if (cc->strays > 0 || cc->outgoing > 0)
		return true;
	return i >= shape->part_first[part] && i < shape->part_end[part];
}

/* The first such cell of a shape; behind the last, if there is none. */
verified_alone u32 first_with_work(u32 index, u32 part)
{
	u32 cell;

	for_each_cell(cell, shape_at(index)) {
		if (has_work(index, part & (HEARTH_MAX_PARTS - 1), cell))
			break;
	}
	return cell;
}

/* Whether there is any for a CPU. */
static __always_inline bool is_work_in(u32 index, s32 cpu)
{
	struct hearth_shape *shape = shape_at(index);

	return first_with_work(index, part_of(shape, cpu)) < shape->nr_cells;
}

#endif
