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
 *   stray     it may run on several CPUs, but not on all of the part. It waits in the bound
 *             queue, where it hides nobody; CPUs that are idle look, and CPUs with fewer that
 *             wait (waits.h)
 *   bound     it may run on this CPU alone
 *
 * A member of a gang (gangs.h) is a stray of its column. A task of a fragment (fragments.h) waits
 * in the bound queue of the fragment's home.
 *
 * So no busy CPU meets a task that it may not run, and looking for work costs the same
 * whatever the masks. In each cell of a shape, the CPUs of one part and cache domain, tasks
 * are counted while they wait, each in the cell and as what it was when it came; when
 * another shape is published, those of the shape before are counted out there.
 *
 * A plan (struct hearth_plan) may say of a task, or of its group, a home, a part, a slice and a
 * share. What it says is looked up when the task next comes to wait, or at a tick, and remembered.
 * Nothing of it is trusted: indices are checked, and a mask goes before a plan.
 */
#ifndef HEARTH_PLACES_H
#define HEARTH_PLACES_H

/* Of tasks that wait, in hearth_task.counted: the cell, and as what. */
#define COUNTED_CELL (NR_CELLS - 1)
#define COUNTED_SHARED (NR_CELLS << 0)
#define COUNTED_OUTGOING (NR_CELLS << 1)
#define COUNTED_STRAY (NR_CELLS << 2)
#define COUNTED_MEMBER (NR_CELLS << 3)
#define COUNTED_FRAGMENT (NR_CELLS << 4)

/* Of a task that has to look the plan up: no published word has this sequence number. */
#define PLANNED_NEVER (~0ull)

#define NO_PLAN (-1)
/* The index of the shape that is the whole machine. */
#define UNDIVIDED 0
#define TARGET_BITS 10

_Static_assert(1 << TARGET_BITS == HEARTH_MAX_TARGETS, "a search halves until one is left");

/* ---- The plan in force ---- */

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

/* The index of the plan, or NO_PLAN. */
static __always_inline s32 plan_index(u64 word)
{
	return (s32)(word >> HEARTH_PUBLISHED_PLAN & 3) - 1;
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

/* Whether no task waits that is counted in a shape. */
verified_alone int is_shape_empty(u32 index)
{
	u32 i;

	bpf_for(i, 0, shape_at(index)->nr_cells) {
		struct cell_ctx *cc =
			cell_ctx(index << QUEUE_CPU_BITS | (i & (HEARTH_MAX_CPUS - 1)));

		if (cc->waiting > 0 || cc->strays > 0)
			return false;
	}
	return true;
}

/* A plan that its daemon has not renewed is dropped; and then its shape, when no task is looked for
 * any more in the one before. */
static __always_inline void plan_check(u64 now_ns)
{
	u64 word = published, next;
	u32 shape = shape_index(word), before = shape_index_before(word);
	s32 plan = plan_index(word);

	if (plan == NO_PLAN && !shape)
		return;
	if (plan != NO_PLAN) {
		if (now_ns <= plans[plan & (HEARTH_PLANS - 1)].until_ns)
			return;
	} else {
		if (before != shape && !is_shape_empty(before))
			return;
		before = shape;
		shape = 0;
	}
	next = ((word >> HEARTH_PUBLISHED_SEQUENCE) + 1) << HEARTH_PUBLISHED_SEQUENCE |
	       before << HEARTH_PUBLISHED_BEFORE | shape;
	__sync_val_compare_and_swap(&published, word, next);
}

/* ---- What it says of a task ---- */

/* By itself, for the verifier would follow each way that a search can take. */
verified_alone u64 target_id(u32 index, u32 i)
{
	return plans[index & (HEARTH_PLANS - 1)].targets[i & (HEARTH_MAX_TARGETS - 1)].id;
}

/* The first of a plan's targets whose id is not below this one. */
verified_alone u32 target_search(u32 index, u64 id)
{
	u32 from = 0, to = plans[index & (HEARTH_PLANS - 1)].nr_targets, i;

	bpf_for(i, 0, TARGET_BITS + 1) {
		u32 middle = (from + to) / 2;

		if (from >= to)
			break;
		if (target_id(index, middle) < id)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* What a plan says of an id; later words go before earlier ones. */
static __always_inline void target_follow(u32 index, u64 id, struct hearth_task *tc)
{
	struct hearth_plan *plan = &plans[index & (HEARTH_PLANS - 1)];
	u32 i = target_search(index, id);
	struct hearth_target *target = &plan->targets[i & (HEARTH_MAX_TARGETS - 1)];

	if (i >= plan->nr_targets || i >= HEARTH_MAX_TARGETS || target->id != id)
		return;
	if (target->home >= 0 && target->home < (s32)topology.nr_cpus)
		tc->home = target->home;
	if (target->part >= 0 && target->part < HEARTH_MAX_PARTS)
		tc->part = target->part;
	if (target->slice_permille)
		tc->slice_permille = target->slice_permille;
	if (target->share_permille >= HEARTH_LEAST_SHARE)
		tc->share_permille = target->share_permille;
	if (target->row >= 0 && tc->home >= 0)
		tc->row = target->row;
}

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

/* Of task->flags; the kernel has it as a macro, too. */
#define PF_KTHREAD 0x00200000

/* A thread of the kernel's own for the CPU that it is bound to: whoever runs there, in whatever
 * row, may wait for what it does. */
static __always_inline bool serves_one_cpu(struct task_struct *p)
{
	return p->flags & PF_KTHREAD && p->nr_cpus_allowed == 1;
}

/* No plan says anything of a task. */
static __always_inline void plan_forget(struct hearth_task *tc)
{
	tc->home = NO_CPU;
	tc->part = NO_PART;
	tc->slice_permille = 1000;
	tc->share_permille = 1000;
	tc->row = NO_ROW;
}

/* Looks up what is published now, and what of it is this task's. */
verified_alone int plan_look_up(struct task_struct *p __arg_trusted,
				struct hearth_task *tc __arg_nonnull, u64 word)
{
	bool is_same =
		tc->planned != PLANNED_NEVER && shape_index(tc->planned) == shape_index(word);
	s32 plan = plan_index(word);

	if (!is_same)
		tc->covers = covered_parts(p, shape_index(word));
	tc->planned = word;
	plan_forget(tc);
	if (plan != NO_PLAN) {
		target_follow(plan, task_group(p), tc);
		target_follow(plan, HEARTH_OF_TASK | (u32)p->pid, tc);
		if (plans[plan & (HEARTH_PLANS - 1)].nr_rows && serves_one_cpu(p)) {
			tc->home = scx_bpf_task_cpu(p);
			tc->row = EVERY_ROW;
		}
	}
	weigh(tc, tc->weight);
	return 0;
}

static __always_inline void plan_follow(struct task_struct *p, struct hearth_task *tc)
{
	u64 word = published;

	if (tc->planned != word)
		plan_look_up(p, tc, word);
}

/* ---- Where a task waits ---- */

/* Whether a task that waits may go to a CPU, to run there. The kernel ends a scheduler that moves
 * one which may not, and the mask of a task that has to stay where it is for a moment may not say
 * so yet. */
static __always_inline bool may_go_to(struct task_struct *p, s32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
	       (scx_bpf_task_cpu(p) == cpu || !is_migration_disabled(p));
}

/* Whether a plan says where, or the task itself. */
static __always_inline bool is_placed(struct hearth_task *tc)
{
	return tc->home >= 0 || tc->part >= 0 || is_kept_whole(tc);
}

/* The CPU of a part where fewest wait, of those that a task may run on; `otherwise` if none. */
verified_alone int cpu_of_part(struct task_struct *p __arg_trusted, u32 part, s32 otherwise)
{
	u32 index = shape_index(published);
	struct hearth_shape *shape = shape_at(index);
	s32 best = otherwise;
	s64 fewest = 0;
	u32 i;

	bpf_for(i, 0, topology.nr_online) {
		s32 cpu = shape->member[i & (HEARTH_MAX_CPUS - 1)];
		s64 waiting = waiting_at(cpu);

		if (part_of(shape, cpu) != part || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (best == otherwise || waiting < fewest) {
			best = cpu;
			fewest = waiting;
		}
	}
	return best;
}

/* In the queue of which CPU a task waits, that is at `cpu` now. */
static __always_inline s32 place_of(struct task_struct *p, struct hearth_task *tc, s32 cpu)
{
	struct hearth_shape *shape = shape_at(shape_index(tc->planned));
	s32 home = fragment_cpu(p, tc);

	if (home >= 0)
		cpu = home;
	else if (tc->home >= 0 && bpf_cpumask_test_cpu(tc->home, p->cpus_ptr))
		cpu = tc->home;
	if (tc->part >= 0 && part_of(shape, cpu) != (u32)tc->part)
		cpu = cpu_of_part(p, tc->part, cpu);
	return cpu;
}

/* Whether a plan keeps a task to another part than that of the CPU where it runs. */
static __always_inline bool is_misplaced(struct task_struct *p, struct hearth_task *tc, s32 cpu)
{
	struct hearth_shape *shape = shape_at(shape_index(tc->planned));

	if (tc->part < 0 || part_of(shape, cpu) == (u32)tc->part)
		return false;
	return !is_migration_disabled(p) && cpu_of_part(p, tc->part, cpu) != cpu;
}

/* As what a task is counted that waits for `cpu`; neither as shared nor as stray if it is bound. */
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
		__sync_fetch_and_add(&queue_ctx(queue)->of_fragments, change);
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

#endif
