// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads the unit of counters (counters/module.c) into the running kernel.
 *
 * The module was compiled without this kernel's headers. So it is told here where the kernel keeps
 * things, by the kernel's BTF; the section that stands for its `struct module` becomes as long as
 * that is, and the one pointer in it, to the function that the kernel calls first, goes where it
 * belongs.
 */
#include "../common.h"
#include "../counters/layout.h"
#include "region.h"

#include <elf.h>
#include <sys/syscall.h>

/* The object file that was compiled with this program. */
__asm__(".section .rodata\n"
	"counters_module:\n\t.incbin \"" COUNTERS_MODULE "\"\n"
	"counters_module_end:\n\t.previous");
extern const char counters_module[], counters_module_end[];

static __attribute__((noreturn)) void unusable(const char *what)
{
	errno = ENOEXEC;
	die("the module of counters: %s", what);
}

static Elf64_Shdr *section_of(char *image, const char *wanted)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)image;
	Elf64_Shdr *sections = (Elf64_Shdr *)(image + header->e_shoff);
	const char *names = image + sections[header->e_shstrndx].sh_offset;
	int i;

	for (i = 0; i < header->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, wanted))
			return &sections[i];
	unusable(wanted);
}

static struct counters_layout kernels_layout(void)
{
	struct kernel_structure pmu = kernel_structure("pmu");
	struct kernel_structure event = kernel_structure("perf_event");

	if (pmu.bytes > COUNTERS_MOST_BYTES)
		unusable("struct pmu of this kernel has more bytes than there is room for");
	return (struct counters_layout){
		.pmu_capabilities = kernel_offset(&pmu, "capabilities"),
		.pmu_event_init = kernel_offset(&pmu, "event_init"),
		.pmu_add = kernel_offset(&pmu, "add"),
		.pmu_del = kernel_offset(&pmu, "del"),
		.pmu_start = kernel_offset(&pmu, "start"),
		.pmu_stop = kernel_offset(&pmu, "stop"),
		.pmu_read = kernel_offset(&pmu, "read"),
		.event_attr = kernel_offset(&event, "attr"),
		.event_count = kernel_offset(&event, "count"),
		.event_private = kernel_offset(&event, "pmu_private"),
	};
}

static void fit_module(char *image)
{
	struct kernel_structure module = kernel_structure("module");
	Elf64_Shdr *own = section_of(image, MODULE_SECTION);
	Elf64_Rela *init =
		(Elf64_Rela *)(image + section_of(image, ".rela" MODULE_SECTION)->sh_offset);

	if (module.bytes > own->sh_size)
		unusable("struct module of this kernel has more bytes than there is room for");
	own->sh_size = module.bytes;
	init->r_offset = kernel_offset(&module, "init");
	strcpy(image + own->sh_offset + kernel_offset(&module, "name"), COUNTERS_NAME);
}

/* Without the plugin a call does nothing, and all counters would be 0. */
static void check_plugin(void)
{
	struct counters now = {.cycles = UINT64_MAX};

	call(CALL_COUNTERS, (uint64_t)&now, sizeof(now));
	if (now.cycles != UINT64_MAX)
		return;
	errno = ENODEV;
	die("nobody counts in this guest; start it with the plugin of hearth emulate");
}

void load_counters(void)
{
	size_t size = (size_t)(counters_module_end - counters_module);
	struct counters_layout layout = kernels_layout();
	char *image = malloc(size);

	check_plugin();
	if (!image)
		die("malloc");
	memcpy(image, counters_module, size);
	memcpy(image + section_of(image, LAYOUT_SECTION)->sh_offset, &layout, sizeof(layout));
	fit_module(image);
	if (syscall(SYS_init_module, image, size, ""))
		die("the kernel does not take the module of counters (dmesg says why; it has to be "
		    "built with CONFIG_MODULE_FORCE_LOAD)");
	free(image);
}
