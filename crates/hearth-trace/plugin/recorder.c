/*
 * QEMU plugin that hands every memory reference of a user program to
 * `hearth record`.
 *
 * The two sides share a file of fixed-size slots. A guest thread fills one slot
 * at a time with 8-byte words and swaps it for an empty one:
 *
 *   plugin --- "full" pipe: messages (block translated, slot full, ...) --> recorder
 *   plugin <-- "empty" pipe: 4-byte slot numbers ------------------------- recorder
 *
 * Waiting on the empty pipe is what keeps a fast guest from outrunning the
 * recorder. Slots live in shared memory so that what a thread had written is
 * still there when the guest crashes: a zero follows the last word.
 *
 * Words (src/word.rs reads the same layout):
 *   block executed   63: 1 | 0..31: block number
 *   reference        63: 0 | 53..62: instruction within the block
 *                    | 52: store | 48..51: log2 of its bytes | 0..47: address
 *
 * A process that the guest forks stops recording at once: the slot it inherits
 * is swapped for a private one that is never handed over.
 */
#define _GNU_SOURCE
#include "qemu_plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOT_BYTES 65536
#define SLOT_HEADER_BYTES 64
#define SLOT_WORDS ((SLOT_BYTES - SLOT_HEADER_BYTES) / 8)

#define BLOCK_WORD (1ULL << 63)
#define INSTRUCTION_SHIFT 53
#define STORE_SHIFT 52
#define SIZE_SHIFT 48
#define ADDRESS_MASK ((1ULL << 48) - 1)

/* Guest system call numbers (x86-64), which need not be the host's. */
#define GUEST_EXECVE 59
#define GUEST_EXECVEAT 322

struct slot {
	uint32_t thread; /* in the last slot, which no thread gets: STATUS_CUT_OFF or 0 */
	uint8_t unused[SLOT_HEADER_BYTES - 4];
	uint64_t words[SLOT_WORDS];
} __attribute__((aligned(SLOT_BYTES)));
_Static_assert(sizeof(struct slot) == SLOT_BYTES, "a slot is exactly SLOT_BYTES long");

#define STATUS_CUT_OFF 1

enum message_kind {
	MESSAGE_BLOCK = 1,  /* number: block, a: address, b: bytes | instructions << 32 */
	MESSAGE_FULL = 2,   /* number: slot, a: its words */
	MESSAGE_THREAD = 3, /* number: thread, which is about to ask for its first slot */
	MESSAGE_EXEC = 4,   /* the program is about to replace itself */
	MESSAGE_EXEC_FAILED = 5,
};

struct message {
	uint32_t kind;
	uint32_t number;
	uint64_t a;
	uint64_t b;
};
_Static_assert(sizeof(struct message) == 24, "the recorder reads 24-byte messages");

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_INTERFACE;

/* How QEMU ends if all that was asked is whether it loads the plugin. */
#define EXIT_LOADED 77

static struct slot *slots;
static long slot_count;
static int full_pipe = -1, empty_pipe = -1;
static ino_t full_inode, empty_inode;
static atomic_bool recording;
static atomic_uint next_block, next_thread;
static pthread_key_t at_thread_exit;

/* Where threads write once they no longer record. They may race for it: nobody reads it. */
static struct slot scratch;

/* Where this thread's next word goes, and the slot that it is in. */
static __thread uint64_t *cursor __attribute__((tls_model("initial-exec")));
static __thread struct slot *current;

/* A guest may close descriptors that it never opened; then the number can name one of its own
 * files. */
static bool still_ours(int fd, ino_t inode)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_ino == inode && S_ISFIFO(status.st_mode);
}

/* The pipes are gone: the guest runs on, unrecorded, and the recorder will learn why. */
static void cut_off(void)
{
	atomic_store(&recording, false);
	slots[slot_count - 1].thread = STATUS_CUT_OFF;
}

static void send(enum message_kind kind, uint32_t number, uint64_t a, uint64_t b)
{
	struct message message = {.kind = kind, .number = number, .a = a, .b = b};

	if (!atomic_load_explicit(&recording, memory_order_relaxed))
		return;
	if (!still_ours(full_pipe, full_inode)) {
		cut_off();
		return;
	}
	while (write(full_pipe, &message, sizeof(message)) < 0) {
		if (errno != EINTR) {
			cut_off();
			return;
		}
	}
}

static struct slot *empty_slot(uint32_t thread)
{
	uint32_t number;
	ssize_t got;

	if (!atomic_load(&recording))
		return &scratch;
	do
		got = still_ours(empty_pipe, empty_inode)
			      ? read(empty_pipe, &number, sizeof(number))
			      : 0;
	while (got < 0 && errno == EINTR);
	if (got != sizeof(number)) {
		cut_off();
		return &scratch;
	}
	slots[number].thread = thread;
	return &slots[number];
}

static void write_to(struct slot *slot)
{
	current = slot;
	cursor = slot->words;
}

static void hand_over(void)
{
	if (current && current != &scratch)
		send(MESSAGE_FULL, current - slots, cursor - current->words, 0);
}

static __attribute__((noinline, cold)) void first_slot(void)
{
	uint32_t thread = atomic_fetch_add(&next_thread, 1);

	send(MESSAGE_THREAD, thread, 0, 0);
	write_to(empty_slot(thread));
	pthread_setspecific(at_thread_exit, current);
}

static __attribute__((noinline, cold)) void next_slot(void)
{
	uint32_t thread = current->thread;

	hand_over();
	write_to(current == &scratch ? &scratch : empty_slot(thread));
}

static void thread_exits(void *unused)
{
	(void)unused;
	hand_over();
	write_to(&scratch);
}

static void forked_child(void)
{
	atomic_store(&recording, false);
	write_to(&scratch);
	if (still_ours(full_pipe, full_inode))
		close(full_pipe);
	if (still_ours(empty_pipe, empty_inode))
		close(empty_pipe);
}

static inline void push(uint64_t word)
{
	if (__builtin_expect(!cursor, 0))
		first_slot();
	cursor[0] = word;
	/* The last word of a slot is never filled, so that there is always room for the zero. */
	cursor[1] = 0;
	cursor++;
	if (__builtin_expect(((uintptr_t)cursor & (SLOT_BYTES - 1)) == SLOT_BYTES - sizeof(word),
			     0))
		next_slot();
}

static void block_executed(unsigned int vcpu, void *block)
{
	(void)vcpu;
	push(BLOCK_WORD | (uintptr_t)block);
}

/*
 * What `info` means is QEMU's own affair and takes two calls to learn, but a program
 * shows only a handful of values: a small table keeps what they mean. An entry is
 * KNOWN | info << 32 | bits of the word >> 32.
 */
#define KNOWN (1ULL << 63)

static _Atomic uint64_t known_info[64];

static __attribute__((noinline, cold)) uint64_t learn(qemu_plugin_meminfo_t info,
						      _Atomic uint64_t *entry)
{
	uint64_t bits = (uint64_t)qemu_plugin_mem_is_store(info) << STORE_SHIFT |
			(uint64_t)(qemu_plugin_mem_size_shift(info) & 15) << SIZE_SHIFT;

	atomic_store_explicit(entry, KNOWN | (uint64_t)info << 32 | bits >> 32,
			      memory_order_relaxed);
	return bits;
}

#define SIZE_ONE_UP (1ULL << SIZE_SHIFT)

/*
 * QEMU moves 16 bytes as two times 8. A word that differs from the last one only by 8 in its
 * address is of the same instruction and direction: with 8 bytes each, they are one reference.
 */
static inline bool is_upper_half(uint64_t word)
{
	return (word >> SIZE_SHIFT & 15) == 3;
}

static void memory_referenced(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr,
			      void *instruction)
{
	_Atomic uint64_t *entry = &known_info[((info >> 4) ^ (info >> 12)) & 63];
	uint64_t known = atomic_load_explicit(entry, memory_order_relaxed);
	uint64_t bits = known << 32, word;

	(void)vcpu;
	if (__builtin_expect(known >> 32 != (info | KNOWN >> 32), 0))
		bits = learn(info, entry);
	word = (uint64_t)(uintptr_t)instruction << INSTRUCTION_SHIFT | bits |
	       (vaddr & ADDRESS_MASK);
	if (__builtin_expect(cursor && word == cursor[-1] + 8 && is_upper_half(word), 0))
		cursor[-1] += SIZE_ONE_UP;
	else
		push(word);
}

static void block_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t instructions = qemu_plugin_tb_n_insns(tb), bytes = 0;
	uint32_t block = atomic_fetch_add(&next_block, 1);

	(void)id;
	for (size_t i = 0; i < instructions; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		bytes += qemu_plugin_insn_size(insn);
		/* One callback for both directions: QEMU 7.2 skips a second one on references made
		 * by helpers. */
		qemu_plugin_register_vcpu_mem_cb(insn, memory_referenced, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, (void *)(i & 1023));
	}
	send(MESSAGE_BLOCK, block, qemu_plugin_tb_vaddr(tb), bytes | (uint64_t)instructions << 32);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, block_executed, QEMU_PLUGIN_CB_NO_REGS,
					     (void *)(uintptr_t)block);
}

static bool replaces_program(int64_t number)
{
	return number == GUEST_EXECVE || number == GUEST_EXECVEAT;
}

static void system_call(qemu_plugin_id_t id, unsigned int vcpu, int64_t number, uint64_t a1,
			uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
			uint64_t a7, uint64_t a8)
{
	(void)id, (void)vcpu, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7,
		(void)a8;
	if (replaces_program(number))
		send(MESSAGE_EXEC, 0, 0, 0);
}

static void system_call_returned(qemu_plugin_id_t id, unsigned int vcpu, int64_t number,
				 int64_t result)
{
	(void)id, (void)vcpu, (void)result;
	if (replaces_program(number))
		send(MESSAGE_EXEC_FAILED, 0, 0, 0);
}

/* Moves a descriptor out of the low numbers that programs expect to be free. */
static int out_of_the_way(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 700);

	if (high < 0)
		high = fcntl(fd, F_DUPFD_CLOEXEC, 200);
	if (high < 0)
		return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? -1 : fd;
	close(fd);
	return high;
}

static bool inode_of(int fd, ino_t *inode)
{
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return false;
	*inode = status.st_ino;
	return true;
}

static long argument(int argc, char **argv, const char *name)
{
	size_t length = strlen(name);

	for (int i = 0; i < argc; i++)
		if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
			return strtol(argv[i] + length + 1, NULL, 10);
	return -1;
}

/* Slots are aligned to their size, so that a pointer into one tells how full it is. */
static bool map_slots(int memory, size_t bytes)
{
	uintptr_t reserved = (uintptr_t)mmap(NULL, bytes + SLOT_BYTES, PROT_NONE,
					     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	void *aligned = (void *)((reserved + SLOT_BYTES - 1) & ~(uintptr_t)(SLOT_BYTES - 1));

	if (reserved == (uintptr_t)MAP_FAILED)
		return false;
	slots = mmap(aligned, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0);
	return slots != MAP_FAILED;
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc,
				      char **argv)
{
	int memory = argument(argc, argv, "memory");

	(void)info;
	if (argument(argc, argv, "check") == 1)
		_exit(EXIT_LOADED);
	slot_count = argument(argc, argv, "slots");
	full_pipe = out_of_the_way(argument(argc, argv, "full"));
	empty_pipe = out_of_the_way(argument(argc, argv, "empty"));
	if (!inode_of(full_pipe, &full_inode) || !inode_of(empty_pipe, &empty_inode) ||
	    slot_count <= 0) {
		fprintf(stderr, "hearth recorder: needs full=FD,empty=FD,memory=FD,slots=N\n");
		return -1;
	}
	if (!map_slots(memory, slot_count * SLOT_BYTES)) {
		perror("hearth recorder: cannot map the shared slots");
		return -1;
	}
	close(memory);
	if (pthread_key_create(&at_thread_exit, thread_exits) ||
	    pthread_atfork(NULL, NULL, forked_child)) {
		fprintf(stderr, "hearth recorder: cannot follow threads and forks\n");
		return -1;
	}
	atomic_store(&recording, true);
	qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
	qemu_plugin_register_vcpu_syscall_cb(id, system_call);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, system_call_returned);
	return 0;
}
