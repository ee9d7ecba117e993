/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule of moving: this scheduler's, or the papers'.
 */
#ifndef HEARTH_RULE_H
#define HEARTH_RULE_H

#ifdef HEARTH_PAPERS
#include "papers/moves.h"
#else
#include "moves.h"
#include "paid.h"
#include "preempt.h"
#endif

#endif
