// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the running kernel says of itself: addresses of its symbols, and where members of its
 * structures are, by its BTF (Documentation/bpf/btf.rst). Everything that is read is checked
 * against the size of what holds it.
 */
#include "../common.h"
#include "region.h"

#include <linux/btf.h>
#include <stdbool.h>

#define BTF_FILE "/sys/kernel/btf/vmlinux"
#define BTF_MOST (64u << 20)

uint64_t kernel_symbol(const char *name)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	unsigned long long address, found = 0;
	char line[256], symbol[128];

	if (!file)
		die("/proc/kallsyms");
	while (!found && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %*c %127s", &address, symbol) == 2 && !strcmp(symbol, name))
			found = address;
	}
	fclose(file);
	if (!found) {
		errno = ENOENT;
		die("%s in /proc/kallsyms", name);
	}
	return found;
}

struct btf {
	char *bytes;
	uint32_t size;
	uint32_t types, types_end;
	uint32_t strings, strings_end;
};

static __attribute__((noreturn)) void broken(const char *what)
{
	errno = EINVAL;
	die("%s: %s", BTF_FILE, what);
}

static struct btf read_btf(void)
{
	struct btf btf = {.bytes = malloc(BTF_MOST)};
	int fd = open(BTF_FILE, O_RDONLY | O_CLOEXEC);
	struct btf_header header;
	ssize_t length;

	if (fd < 0 || !btf.bytes)
		die("%s", BTF_FILE);
	while ((length = read(fd, btf.bytes + btf.size, BTF_MOST - btf.size)) > 0)
		btf.size += (uint32_t)length;
	close(fd);
	if (length < 0 || btf.size < sizeof(header))
		broken("it cannot be read");
	memcpy(&header, btf.bytes, sizeof(header));
	if (header.magic != BTF_MAGIC || header.hdr_len > btf.size || header.type_off > BTF_MOST ||
	    header.type_len > BTF_MOST || header.str_off > BTF_MOST || header.str_len > BTF_MOST)
		broken("no BTF");
	btf.types = header.hdr_len + header.type_off;
	btf.types_end = btf.types + header.type_len;
	btf.strings = header.hdr_len + header.str_off;
	btf.strings_end = btf.strings + header.str_len;
	if (btf.types_end > btf.size || btf.strings_end > btf.size ||
	    btf.strings == btf.strings_end || btf.bytes[btf.strings_end - 1])
		broken("it ends too early");
	return btf;
}

static bool is_named(const struct btf *btf, uint32_t name, const char *wanted)
{
	if (name >= btf->strings_end - btf->strings)
		broken("a name is beyond its end");
	return !strcmp(btf->bytes + btf->strings + name, wanted);
}

/* How many bytes follow a type: kinds from 1 up to the last that this knows. */
static uint32_t bytes_after(uint32_t kind, uint32_t count)
{
	switch (kind) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return count * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return count * 8;
	case BTF_KIND_DATASEC:
	case 19: /* BTF_KIND_ENUM64, which older headers lack */
		return count * 12;
	case 0:
		broken("a type without a kind");
	default:
		if (kind > 19)
			broken("a kind of type that is not known");
		return 0;
	}
}

static const struct btf *kernel_btf(void)
{
	static struct btf btf;

	if (!btf.bytes)
		btf = read_btf();
	return &btf;
}

struct kernel_structure kernel_structure(const char *name)
{
	const struct btf *btf = kernel_btf();
	uint32_t at = btf->types;

	while (at + sizeof(struct btf_type) <= btf->types_end) {
		struct btf_type type;
		uint32_t kind, count, more;

		memcpy(&type, btf->bytes + at, sizeof(type));
		kind = BTF_INFO_KIND(type.info);
		count = BTF_INFO_VLEN(type.info);
		more = bytes_after(kind, count);
		at += sizeof(type);
		if (more > btf->types_end - at)
			broken("a type is beyond its end");
		if (kind == BTF_KIND_STRUCT && is_named(btf, type.name_off, name))
			return (struct kernel_structure){
				.bytes = type.size,
				.members = at,
				.count = count,
				.has_bit_sizes = BTF_INFO_KFLAG(type.info),
			};
		at += more;
	}
	errno = ENOENT;
	die("struct %s in %s", name, BTF_FILE);
}

uint32_t kernel_offset(const struct kernel_structure *of, const char *name)
{
	const struct btf *btf = kernel_btf();
	uint32_t i, bits;

	for (i = 0; i < of->count; i++) {
		struct btf_member member;

		memcpy(&member, btf->bytes + of->members + i * sizeof(member), sizeof(member));
		if (!is_named(btf, member.name_off, name))
			continue;
		bits = of->has_bit_sizes ? BTF_MEMBER_BIT_OFFSET(member.offset) : member.offset;
		return bits / 8;
	}
	errno = ENOENT;
	die("member %s of a structure in %s", name, BTF_FILE);
}
