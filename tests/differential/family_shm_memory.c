// SPDX-License-Identifier: MIT
/*
 * What processes have mapped of segments, as /proc/PID/maps shows it; reading and writing there;
 * and what programs do to mappings without the calls of the family.
 *
 * Memory is reached by process_vm_readv and its like, also by a process in itself: what cannot be
 * accessed is a result and no signal.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "families.h"
#include "family_shm.h"
#include "worker.h"
#include "world.h"

enum {
	MAPS_BYTES = 64 * 1024,
	READ_PAGES_MAX = 8,
};

/* ---- Mappings -------------------------------------------------------------------------------- */

/*
 * The id of the segment that a line is of: on Linux the inode number of /SYSV<key>, with usysv the
 * end of the name SYSV<key>-<id>.
 */
static int id_of_line(const char *path, unsigned long inode)
{
	const char *name = strstr(path, "/SYSV");
	size_t key_chars = strlen("/SYSV00000000");

	if (!name || strlen(name) < key_chars)
		return -1;
	return name[key_chars] == '-' ? atoi(name + key_chars + 1) : (int)inode;
}

static size_t read_maps(pid_t pid, char *buffer, size_t size)
{
	char path[32] = "/proc/self/maps";
	size_t used = 0;
	ssize_t got;
	int fd;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (got = read(fd, buffer + used, size - 1 - used)) > 0)
		used += (size_t)got;
	if (fd >= 0)
		close(fd);
	buffer[used] = '\0';
	return used;
}

bool shm_in_window(uint64_t address)
{
	return address >= WINDOW_ADDRESS && address < WINDOW_ADDRESS + 0x100000;
}

unsigned shm_pieces(pid_t pid, struct piece *pieces, unsigned max)
{
	static _Thread_local char buffer[MAPS_BYTES];
	unsigned count = 0;

	read_maps(pid, buffer, sizeof(buffer));
	for (char *line = buffer, *next; *line && count < max; line = next) {
		struct piece *piece = &pieces[count];
		unsigned long start, end, offset, inode;
		int path = 0;

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (sscanf(line, "%lx-%lx %4s %lx %*x:%*x %lu %n", &start, &end, piece->perms,
			   &offset, &inode, &path) < 5)
			continue;
		piece->start = start;
		piece->end = end;
		piece->offset = offset;
		piece->id = id_of_line(line + path, inode);
		count += piece->id >= 0 || shm_in_window(start);
	}
	return count;
}

static bool overlap(const struct piece *piece, uint64_t start, uint64_t end)
{
	return piece->start < end && start < piece->end;
}

int shm_attached_at(uint64_t address)
{
	struct piece pieces[PIECES_MAX];
	unsigned count = shm_pieces(0, pieces, PIECES_MAX);

	for (unsigned ix = 0; ix < count; ix++)
		if (pieces[ix].id >= 0 && pieces[ix].start >= address &&
		    pieces[ix].start - pieces[ix].offset == address)
			return pieces[ix].id;
	return -1;
}

/* ---- What is blurred ------------------------------------------------------------------------- */

unsigned shm_blur_of(const struct shared *shared, int id)
{
	for (unsigned ix = 0; ix < shared->blur_count; ix++)
		if (shared->blur[ix].id == id)
			return shared->blur[ix].what;
	return 0;
}

void shm_sharpen(struct shared *shared, int id, unsigned what)
{
	for (unsigned ix = 0; ix < shared->blur_count; ix++)
		if (shared->blur[ix].id == id)
			shared->blur[ix].what &= (uint8_t)~what;
}

/* With a process to note: its end will blur the segment once more. */
static void blur(struct hands *hands, int id)
{
	struct shared *shared = hands->shared;
	unsigned ix = 0;

	while (ix < shared->blur_count && shared->blur[ix].id != id)
		ix++;
	if (ix == BLURS_MAX)
		return;
	if (ix == shared->blur_count) {
		shared->blur[ix].by = 0;
		shared->blur[ix].id = id;
		shared->blur_count++;
	}
	shared->blur[ix].what = BLUR_ALL;
	shared->has_pieces = 1;
	if (!hands->is_child)
		shared->blur[ix].by |= (uint8_t)(1U << hands->process_ix);
}

static void blur_again(struct shared *shared, unsigned process_ix)
{
	for (unsigned ix = 0; ix < shared->blur_count; ix++)
		if (shared->blur[ix].by >> process_ix & 1)
			shared->blur[ix].what = BLUR_ALL;
}

void shm_process_forks(struct shared *shared, unsigned process_ix)
{
	blur_again(shared, process_ix);
}

void shm_process_ends(struct shared *shared, unsigned process_ix)
{
	blur_again(shared, process_ix);
	for (unsigned ix = 0; ix < shared->blur_count; ix++)
		shared->blur[ix].by &= (uint8_t) ~(1U << process_ix);
	memset(shared->attach_address[process_ix], 0, sizeof(shared->attach_address[process_ix]));
	shared->has_attached[process_ix] = 0;
}

static bool has_segment(const struct piece *pieces, unsigned count, uint64_t start, uint64_t end,
			struct hands *blur_for)
{
	bool any = false;

	for (unsigned ix = 0; ix < count; ix++) {
		if (pieces[ix].id < 0 || !overlap(&pieces[ix], start, end))
			continue;
		any = true;
		if (blur_for)
			blur(blur_for, pieces[ix].id);
	}
	return any;
}

/* ---- Access ---------------------------------------------------------------------------------- */

bool shm_address(struct hands *hands, int64_t where, int64_t page, int64_t byte, int64_t at,
		 uint64_t *ret_address, struct text *text)
{
	struct piece pieces[PIECES_MAX];
	uint64_t base = 0;
	unsigned count;

	switch (where) {
	case WHERE_NULL:
		*ret_address = 0;
		return true;
	case WHERE_WINDOW:
		base = WINDOW_ADDRESS;
		break;
	case WHERE_ATTACH:
		base = hands->shared->attach_address[hands->process_ix][at % ATTACHES_MAX];
		if (base == 0) {
			text_puts(text, "no attach");
			return false;
		}
		/* What is behind it differs. */
		count = shm_pieces(0, pieces, PIECES_MAX);
		for (unsigned ix = 0; ix < count; ix++)
			if (pieces[ix].start == base &&
			    (uint64_t)page >= (pieces[ix].end - base) / SHM_PAGE_BYTES)
				page = 0;
		break;
	case WHERE_TAKEN:
		base = (uint64_t)(uintptr_t)hands->good;
		break;
	case WHERE_LOW:
		page = 0;
		break;
	case WHERE_TOP:
		base = sizeof(void *) == 8 ? (uint64_t)1 << 47 : 0xc0000000;
		page = -page;
		break;
	default:
		page = -page;
		break;
	}
	*ret_address = base + (uint64_t)page * SHM_PAGE_BYTES + (uint64_t)byte;
	return true;
}

/* A sum over a page of a process; false if it cannot be read. */
static bool sum_page(pid_t pid, uint64_t address, unsigned *ret_sum)
{
	unsigned char bytes[SHM_PAGE_BYTES];
	struct iovec local = {bytes, sizeof(bytes)};
	struct iovec remote = {(void *)(uintptr_t)address, sizeof(bytes)};

	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != sizeof(bytes))
		return false;
	*ret_sum = 0;
	for (unsigned ix = 0; ix < sizeof(bytes); ix++)
		if (bytes[ix])
			*ret_sum = (*ret_sum + bytes[ix] * (ix + 1)) % 999983;
	return true;
}

static void put_page(struct text *text, pid_t pid, uint64_t address)
{
	unsigned sum;

	text_puts(text, " ");
	if (sum_page(pid, address, &sum))
		text_putd(text, sum);
	else
		text_puts(text, "-");
}

void shm_call_read(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	uint64_t address;

	if (!shm_address(hands, step->arg[0], step->arg[1], 0, step->arg[2], &address, &text))
		return;
	/* Behind a remembered attach lies what lies there. */
	for (int64_t page = 0; page < step->arg[3] && page < READ_PAGES_MAX; page++)
		if (page == 0 || step->arg[0] == WHERE_WINDOW)
			put_page(&text, getpid(), address + (uint64_t)page * SHM_PAGE_BYTES);
}

void shm_call_write(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	unsigned char bytes[2] = {(unsigned char)step->arg[4], (unsigned char)(step->arg[4] >> 8)};
	struct iovec local = {bytes, sizeof(bytes)}, remote = {NULL, sizeof(bytes)};
	uint64_t address;
	ssize_t ret;

	if (!shm_address(hands, step->arg[0], step->arg[1], step->arg[3] % (SHM_PAGE_BYTES - 1),
			 step->arg[2], &address, &text))
		return;
	remote.iov_base = (void *)(uintptr_t)address;
	ret = process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
	text_result(&text, ret, errno);
}

/* ---- Changes of mappings --------------------------------------------------------------------- */

static bool range_of(const struct step *step, uint64_t *ret_start, uint64_t *ret_end,
		     struct text *text)
{
	int64_t page = step->arg[0], count = step->arg[1];

	if (page < 0 || count < 1 || page + count > WINDOW_PAGES) {
		text_puts(text, "not in the window");
		return false;
	}
	*ret_start = WINDOW_ADDRESS + (uint64_t)page * SHM_PAGE_BYTES;
	*ret_end = *ret_start + (uint64_t)count * SHM_PAGE_BYTES;
	return true;
}

void shm_call_munmap(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	struct piece pieces[PIECES_MAX];
	uint64_t start, end;
	int ret;

	if (!range_of(step, &start, &end, &text))
		return;
	has_segment(pieces, shm_pieces(0, pieces, PIECES_MAX), start, end, hands);
	ret = munmap((void *)(uintptr_t)start, end - start);
	text_result(&text, ret, errno);
}

void shm_call_mmap(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	struct piece pieces[PIECES_MAX];
	uint64_t start, end;
	void *got;

	if (!range_of(step, &start, &end, &text))
		return;
	if (!hands->is_child)
		hands->shared->has_attached[hands->process_ix] = 1;
	has_segment(pieces, shm_pieces(0, pieces, PIECES_MAX), start, end, hands);
	got = mmap((void *)(uintptr_t)start, end - start, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	text_result(&text, got == MAP_FAILED ? -1 : 0, errno);
}

static bool same_memory(const struct piece *a, const struct piece *b)
{
	return a->id >= 0 && a->id == b->id && a->start - a->offset == b->start - b->offset;
}

/* Would two neighbours be alike if this range got this protection? */
static bool would_join(const struct piece *pieces, unsigned count, uint64_t start, uint64_t end,
		       const char *perms)
{
	for (unsigned ix = 0; ix + 1 < count; ix++) {
		const struct piece *a = &pieces[ix], *b = &pieces[ix + 1];
		bool a_changes = start < a->end && a->end <= end;
		bool b_changes = start <= b->start && b->start < end;

		if (!same_memory(a, b) || a->end != b->start || (!a_changes && !b_changes))
			continue;
		if (!strncmp(a_changes ? perms : a->perms, b_changes ? perms : b->perms, 3))
			return true;
	}
	return false;
}

void shm_call_mprotect(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	struct piece pieces[PIECES_MAX];
	int prot = (int)step->arg[2] & (PROT_READ | PROT_WRITE | PROT_EXEC);
	char perms[4] = {prot & PROT_READ ? 'r' : '-', prot & PROT_WRITE ? 'w' : '-',
			 prot & PROT_EXEC ? 'x' : '-', '\0'};
	uint64_t start, end;
	unsigned count;
	int ret;

	if (!range_of(step, &start, &end, &text))
		return;
	count = shm_pieces(0, pieces, PIECES_MAX);
	if (would_join(pieces, count, start, end, perms)) {
		text_puts(&text, "would join");
		return;
	}
	has_segment(pieces, count, start, end, hands);
	ret = mprotect((void *)(uintptr_t)start, end - start, prot);
	text_result(&text, ret, errno);
}

/* The mapping of a segment that holds all of the range; null if there is none. */
static const struct piece *source_of(const struct piece *pieces, unsigned count, uint64_t start,
				     uint64_t end)
{
	for (unsigned ix = 0; ix < count; ix++)
		if (pieces[ix].id >= 0 && pieces[ix].start <= start && end <= pieces[ix].end)
			return &pieces[ix];
	return NULL;
}

static bool has_such(const struct piece *pieces, unsigned count, const struct piece *made)
{
	for (unsigned ix = 0; ix < count; ix++)
		if (same_memory(&pieces[ix], made))
			return true;
	return false;
}

void shm_call_mremap(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	struct piece pieces[PIECES_MAX], made = {0};
	const struct piece *source;
	int64_t to = step->arg[2], length = step->arg[3];
	uint64_t start, end, new_bytes, new_start;
	unsigned count;
	void *got;

	if (!range_of(step, &start, &end, &text))
		return;
	if (to < 0 || length < 1 || to + length > WINDOW_PAGES) {
		text_puts(&text, "not into the window");
		return;
	}
	count = shm_pieces(0, pieces, PIECES_MAX);
	source = source_of(pieces, count, start, end);
	if (!source) {
		text_puts(&text, "no segment there");
		return;
	}
	new_bytes = (uint64_t)length * SHM_PAGE_BYTES;
	new_start = WINDOW_ADDRESS + (uint64_t)to * SHM_PAGE_BYTES;
	made.id = source->id;
	made.offset = source->offset + (start - source->start);
	made.start = new_start;
	if (step->arg[4] == REMAP_RESIZE) {
		made.start = new_start = start;
		/* Growing may fill the gap before what was torn off. */
		if (end < start + new_bytes &&
		    has_segment(pieces, count, start + new_bytes, start + new_bytes + 1, NULL)) {
			text_puts(&text, "might join");
			return;
		}
	} else if (has_such(pieces, count, &made)) {
		text_puts(&text, "would join");
		return;
	}
	has_segment(pieces, count, start, end, hands);
	has_segment(pieces, count, new_start, new_start + new_bytes, hands);
	if (step->arg[4] == REMAP_RESIZE)
		got = mremap((void *)(uintptr_t)start, end - start, new_bytes, 0);
	else
		got = mremap((void *)(uintptr_t)start,
			     step->arg[4] == REMAP_DUPLICATE ? 0 : end - start, new_bytes,
			     MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(uintptr_t)new_start);
	if (got == MAP_FAILED)
		text_result(&text, -1, errno);
	else
		text_printf(&text, "window+%d",
			    (int)(((uintptr_t)got - WINDOW_ADDRESS) / SHM_PAGE_BYTES));
}

/* ---- What the stage shows -------------------------------------------------------------------- */

static unsigned rank_of(const struct piece *piece)
{
	return piece->start == 0 ? 0 : shm_in_window(piece->start) ? 1 : 2;
}

/* By address where that is the same on both sides. */
static int compare_pieces(const void *a_object, const void *b_object)
{
	const struct piece *a = a_object, *b = b_object;

	if (rank_of(a) != rank_of(b))
		return rank_of(a) < rank_of(b) ? -1 : 1;
	if (rank_of(a) == 1)
		return a->start < b->start ? -1 : a->start > b->start;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	if (a->end - a->start != b->end - b->start)
		return a->end - a->start < b->end - b->start ? -1 : 1;
	return strcmp(a->perms, b->perms);
}

static void put_piece(struct text *text, pid_t pid, const struct piece *piece)
{
	text_puts(text, " |");
	if (shm_in_window(piece->start)) {
		text_puts(text, " +");
		text_putd(text, (long)((piece->start - WINDOW_ADDRESS) / SHM_PAGE_BYTES));
	} else if (piece->start == 0) {
		text_puts(text, " low");
	}
	text_puts(text, " ");
	text_puts(text, piece->perms);
	text_puts(text, " ");
	text_putd(text, (long)((piece->end - piece->start) / SHM_PAGE_BYTES));
	if (piece->id >= 0) {
		text_puts(text, " of ");
		text_putd(text, piece->id);
		text_puts(text, "@");
		text_putd(text, (long)(piece->offset / SHM_PAGE_BYTES));
	}
	put_page(text, pid, piece->start);
}

/* What the generator needs of the window: pages in use, pages where segments begin. */
static void note_piece(struct object_hint *hint, const struct piece *piece)
{
	uint64_t page = (piece->start - WINDOW_ADDRESS) / SHM_PAGE_BYTES;

	if (!shm_in_window(piece->start) || piece->id < 0)
		return;
	if (page < WINDOW_PAGES && piece->offset == 0)
		hint->value[3] |= 1 << page;
	for (; page < WINDOW_PAGES && WINDOW_ADDRESS + page * SHM_PAGE_BYTES < piece->end; page++)
		hint->value[2] |= 1 << page;
}

void shm_dump_pieces(const struct shared *shared, struct text *text, struct object_hint *hints)
{
	static struct piece pieces[PIECES_MAX];

	for (unsigned process_ix = 0; process_ix < shared->process_count; process_ix++) {
		pid_t pid = shared->process_pid[process_ix];
		struct object_hint *hint = process_ix < SLOTS_MAX ? &hints[process_ix] : NULL;
		unsigned count;

		for (unsigned at = 0; hint && at < ATTACHES_MAX; at++)
			if (shared->attach_address[process_ix][at])
				hint->value[1] |= 1 << at;
		if (!shared->has_attached[process_ix] || pid <= 0)
			continue;
		count = shm_pieces(pid, pieces, PIECES_MAX);
		if (!count)
			continue;
		qsort(pieces, count, sizeof(pieces[0]), compare_pieces);
		text_puts(text, "p");
		text_putd(text, process_ix);
		for (unsigned ix = 0; ix < count; ix++) {
			put_piece(text, pid, &pieces[ix]);
			if (hint)
				note_piece(hint, &pieces[ix]);
		}
		text_puts(text, "\n");
	}
}
