/* SPDX-License-Identifier: GPL-2.0-only */
/* Histograms, and running sums from which userspace fits lines. */
#ifndef HEARTH_OBSERVE_SUMS_H
#define HEARTH_OBSERVE_SUMS_H

/* Number of the highest bit that is set; 0 for 0. */
static __always_inline u32 log2_of(u64 value)
{
	u32 bit = 0;

	if (value >> 32) {
		value >>= 32;
		bit += 32;
	}
	if (value >> 16) {
		value >>= 16;
		bit += 16;
	}
	if (value >> 8) {
		value >>= 8;
		bit += 8;
	}
	if (value >> 4) {
		value >>= 4;
		bit += 4;
	}
	if (value >> 2) {
		value >>= 2;
		bit += 2;
	}
	return bit + (value >> 1);
}

/* Bin 0 is below 1024 ns; then 4 for each doubling. */
static __always_inline u32 length_bin(u64 ns)
{
	u32 bit, bin;

	if (ns < 1024)
		return 0;
	bit = log2_of(ns);
	bin = 1 + 4 * (bit - 10) + (ns >> (bit - 2) & 3);
	return bin < OBSERVE_LENGTHS ? bin : OBSERVE_LENGTHS - 1;
}

static __always_inline u32 bin_from(u64 ns, u32 lowest_bit, u32 bins)
{
	u32 bit = log2_of(ns >> lowest_bit);

	return bit < bins ? bit : bins - 1;
}

static __always_inline void wide_add(struct wide *wide, u64 a, u64 b)
{
	u64 product = a * b;

	wide->low += product;
	wide->high += wide->low < product;
}

/* What does not fit counts as the largest that does. */
static __always_inline void wide_add_square(struct wide *wide, s64 value)
{
	u64 size = value < 0 ? -value : value;

	if (size >> 32)
		size = 0xffffffff;
	wide_add(wide, size, size);
}

/* Products are of numbers below 2^32; what is greater is no sensible reading. */
static __always_inline bool sensible(const struct reading *part)
{
	return !((part->instructions | part->misses | part->cycles) >> 32);
}

static __always_inline void sums_add(struct observe_sums *sums, const struct reading *part)
{
	if (!sensible(part))
		return;
	sums->count++;
	sums->ns += part->ns;
	sums->instructions += part->instructions;
	sums->misses += part->misses;
	sums->cycles += part->cycles;
	wide_add(&sums->ii, part->instructions, part->instructions);
	wide_add(&sums->im, part->instructions, part->misses);
	wide_add(&sums->ic, part->instructions, part->cycles);
	wide_add(&sums->mm, part->misses, part->misses);
	wide_add(&sums->mc, part->misses, part->cycles);
	wide_add(&sums->cc, part->cycles, part->cycles);
}

static __always_inline s64 more_than(u64 first, u64 later, u64 first_work, u64 later_work)
{
	return (s64)first - (s64)(later * first_work / later_work);
}

/* A later part that is too short says little of the steady state. */
static __always_inline void pairs_add(struct observe_pairs *pairs, const struct reading *first,
				      const struct reading *later)
{
	s64 misses, cycles;

	if (!sensible(first) || !sensible(later) || !later->instructions ||
	    later->instructions < first->instructions / 4)
		return;
	misses = more_than(first->misses, later->misses, first->instructions, later->instructions);
	cycles = more_than(first->cycles, later->cycles, first->instructions, later->instructions);
	pairs->count++;
	pairs->misses += misses;
	pairs->cycles += cycles;
	wide_add_square(&pairs->misses_squared, misses);
	wide_add_square(&pairs->cycles_squared, cycles);
}

static __always_inline void point_add(struct observe_point *point, const struct reading *so_far)
{
	if (!sensible(so_far))
		return;
	point->count++;
	point->ns += so_far->ns;
	point->instructions += so_far->instructions;
	point->misses += so_far->misses;
	point->cycles += so_far->cycles;
}

#endif
