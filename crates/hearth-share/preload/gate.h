/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gates: functions that stand before others of the same name whatever these take. A gate saves the
 * registers in which arguments travel, has something done, and jumps to the function behind, which
 * finds its arguments where the caller has put them and returns to the caller.
 */
#ifndef GATE_H
#define GATE_H

#include "follow.h"

struct follow_gate {
	struct follow_function function;
	void (*before)(struct follow_gate *gate, void *real, const void *caller);
	void *_Atomic noted_for; /* where `before` keeps what it knows of `real` */
	void *_Atomic noted;
};

/* Does what is to be done, and tells where to go on. */
__attribute__((used, visibility("hidden"))) void *follow_pass(struct follow_gate *gate,
							      const void *caller);

#if defined(__x86_64__)
#define GATE_ENTRY(symbol, gate)                                                    \
	"	.globl " symbol "\n	.type " symbol ", @function\n" symbol ":\n" \
	"	endbr64\n	leaq " gate "(%rip), %r11\n	jmp follow_gate\n"      \
	"	.size " symbol ", . - " symbol "\n"
#elif defined(__aarch64__)
#define GATE_ENTRY(symbol, gate)                                                        \
	"	.globl " symbol "\n	.type " symbol ", %function\n" symbol ":\n"     \
	"	adrp x16, " gate "\n	add x16, x16, :lo12:" gate "\n	b follow_gate\n" \
	"	.size " symbol ", . - " symbol "\n"
#endif

/* A gate of this name, where the machine's calls are known; elsewhere there is none. */
#ifdef GATE_ENTRY
#define GATE(stood_before, action)                                                             \
	__attribute__((used, visibility("hidden"))) struct follow_gate gate_##stood_before = { \
		.function.name = #stood_before,                                                \
		.before = action,                                                              \
	};                                                                                     \
	__asm__(".text\n" GATE_ENTRY(#stood_before, "gate_" #stood_before));
#else
#define GATE(stood_before, action)
#endif

#endif
