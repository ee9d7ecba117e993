/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the compiler calls at each access to memory under -fsanitize=thread: one function of the
 * host, which may let another CPU run before the access is made.
 */
#include <stdbool.h>
#include <stdint.h>

void (*hearth_access)(void);

static void access(void)
{
	if (hearth_access)
		hearth_access();
}

#define ACCESSES(size)                              \
	void __tsan_read##size(void *at)            \
	{                                           \
		(void)at, access();                 \
	}                                           \
	void __tsan_write##size(void *at)           \
	{                                           \
		(void)at, access();                 \
	}                                           \
	void __tsan_unaligned_read##size(void *at)  \
	{                                           \
		(void)at, access();                 \
	}                                           \
	void __tsan_unaligned_write##size(void *at) \
	{                                           \
		(void)at, access();                 \
	}                                           \
	void __tsan_volatile_read##size(void *at)   \
	{                                           \
		(void)at, access();                 \
	}                                           \
	void __tsan_volatile_write##size(void *at)  \
	{                                           \
		(void)at, access();                 \
	}

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void *at, unsigned long size)
{
	(void)at, (void)size, access();
}
void __tsan_write_range(void *at, unsigned long size)
{
	(void)at, (void)size, access();
}

/* Whole while it lasts: the host switches CPUs only in access(). */
#define ATOMIC(bits, name, updated)                                                           \
	uint##bits##_t __tsan_atomic##bits##_##name(uint##bits##_t *at, uint##bits##_t value, \
						    int order)                                \
	{                                                                                     \
		uint##bits##_t old;                                                           \
                                                                                              \
		(void)order, access();                                                        \
		old = *at;                                                                    \
		*at = (updated);                                                              \
		return old;                                                                   \
	}

ATOMIC(32, fetch_add, old + value)
ATOMIC(64, fetch_add, old + value)
ATOMIC(64, fetch_and, ~(~old | ~value))
ATOMIC(64, fetch_or, old | value)
ATOMIC(32, exchange, value)
ATOMIC(64, exchange, value)

#define COMPARE_EXCHANGE(bits)                                                                 \
	bool __tsan_atomic##bits##_compare_exchange_strong(                                    \
		uint##bits##_t *at, uint##bits##_t *expected, uint##bits##_t value, int order, \
		int order_of_failure)                                                          \
	{                                                                                      \
		bool same;                                                                     \
                                                                                               \
		(void)order, (void)order_of_failure, access();                                 \
		same = *at == *expected;                                                       \
		if (same)                                                                      \
			*at = value;                                                           \
		else                                                                           \
			*expected = *at;                                                       \
		return same;                                                                   \
	}

COMPARE_EXCHANGE(32)
COMPARE_EXCHANGE(64)

void __tsan_init(void)
{
}
void __tsan_func_entry(void *at)
{
	(void)at;
}
void __tsan_func_exit(void)
{
}
