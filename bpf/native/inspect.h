/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What tests ask of the native build, while no callback runs.
 */
#ifndef HEARTH_NATIVE_INSPECT_H
#define HEARTH_NATIVE_INSPECT_H

bool hearth_has_head(s32 queue)
{
	return queue_ctx(queue)->head != NO_USAGE;
}

#endif
