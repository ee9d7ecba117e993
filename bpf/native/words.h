/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In the simulated kernel a task's word is a field of the task (scx.h): there is nothing to
 * register.
 */
