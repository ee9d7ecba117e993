// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finding what this library stands before. Mostly the dynamic linker knows the next function of a
 * name. It does not where the runtime is visible to some objects only: Python loads its modules so,
 * and some bring a runtime along. Then the object that calls, and what that object needs, is
 * searched.
 */
#include "follow.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t finding = PTHREAD_MUTEX_INITIALIZER;

/* The function of an object, or of what the object needs. */
static void *in_object(const char *object, const char *name)
{
	void *handle = object && *object ? dlopen(object, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	void *function = handle ? dlsym(handle, name) : NULL;

	if (handle)
		dlclose(handle);
	return function;
}

struct search {
	const char *name;
	const void *self;
	void *function;
};

static bool is_own(const void *function, const void *self)
{
	Dl_info info;

	return dladdr(function, &info) && info.dli_fbase == self;
}

static int look_into(struct dl_phdr_info *object, size_t size, void *data)
{
	struct search *search = data;
	void *function = in_object(object->dlpi_name, search->name);

	(void)size;
	if (function && !is_own(function, search->self))
		search->function = function;
	return search->function != NULL;
}

/* In the object that calls; else, where a compiler at run time made the caller, in any. */
static void *in_scope(const char *name, const Dl_info *caller)
{
	struct search search = {.name = name};
	Dl_info own;

	if (dladdr((void *)follow_find, &own))
		search.self = own.dli_fbase;
	if (caller->dli_fname)
		search.function = in_object(caller->dli_fname, name);
	if (!search.function || is_own(search.function, search.self)) {
		search.function = NULL;
		dl_iterate_phdr(look_into, &search);
	}
	return search.function;
}

static void *known(struct follow_function *function, const void *object)
{
	int scopes = atomic_load_explicit(&function->scopes, memory_order_acquire);

	for (int i = 0; i < scopes; i++)
		if (function->scoped[i].object == object)
			return function->scoped[i].function;
	return NULL;
}

static void *find(struct follow_function *function, const Dl_info *caller)
{
	int scopes = atomic_load_explicit(&function->scopes, memory_order_relaxed);
	void *real = dlsym(RTLD_NEXT, function->name);

	if (real) {
		atomic_store_explicit(&function->global, real, memory_order_relaxed);
		return real;
	}
	real = in_scope(function->name, caller);
	if (real && scopes < (int)(sizeof(function->scoped) / sizeof(function->scoped[0]))) {
		function->scoped[scopes].object = caller->dli_fbase;
		function->scoped[scopes].function = real;
		atomic_store_explicit(&function->scopes, scopes + 1, memory_order_release);
	}
	return real;
}

void *follow_find(struct follow_function *function, const void *caller)
{
	Dl_info object = {0};
	void *real;

	dladdr(caller, &object);
	real = known(function, object.dli_fbase);
	if (real)
		return real;
	pthread_mutex_lock(&finding);
	real = known(function, object.dli_fbase);
	if (!real)
		real = find(function, &object);
	pthread_mutex_unlock(&finding);
	return real;
}
