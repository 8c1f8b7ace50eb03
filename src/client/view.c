// SPDX-License-Identifier: MIT
/*
 * The texts of the files of /proc. One table has all views: the lists of objects, of which each
 * family writes its own lines, and the numbers, which are places in the region with a range.
 *
 * The lists are made of the same answers as the *_STAT_ANY commands, one object after the other; as
 * in the kernel, they show no single moment.
 */
#include "client/view.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "client/attach_file.h"
#include "client/attach_used.h"
#include "client/call.h"
#include "client/creds.h"
#include "client/session.h"
#include "core/ids.h"
#include "core/region.h"
#include "ipc/msg.h"
#include "ipc/sem.h"
#include "ipc/shm.h"

/* ---- Lines ------------------------------------------------------------------------------- */

struct line {
	struct attach_census census; /* for lines of segments */
	size_t length;
	char text[320];
};

static void put_char(struct line *l, char c)
{
	if (l->length < sizeof(l->text))
		l->text[l->length++] = c;
}

/* Right-aligned, as %*llu and %*llo. */
static void put_number(struct line *l, unsigned width, unsigned base, uint64_t n)
{
	char digits[24];
	unsigned k = 0;

	do
		digits[k++] = (char)('0' + n % base);
	while ((n /= base) != 0);
	for (; width > k; width--)
		put_char(l, ' ');
	while (k > 0)
		put_char(l, digits[--k]);
}

/* As %*d. */
static void put_signed(struct line *l, unsigned width, int32_t n)
{
	uint64_t magnitude = n < 0 ? -(uint64_t)n : (uint64_t)n;

	if (n >= 0) {
		put_number(l, width, 10, magnitude);
		return;
	}
	for (uint64_t rest = magnitude; rest >= 10; rest /= 10)
		width -= width > 0;
	for (; width > 2; width--)
		put_char(l, ' ');
	put_char(l, '-');
	put_number(l, 0, 10, magnitude);
}

static void put_unsigned(struct line *l, unsigned width, uint64_t n)
{
	put_char(l, ' ');
	put_number(l, width, 10, n);
}

static void put_object(struct line *l, int32_t key, int32_t id, const struct object_shm *o)
{
	put_signed(l, 10, key);
	put_char(l, ' ');
	put_signed(l, 10, id);
	put_char(l, ' ');
	put_char(l, ' ');
	put_number(l, 4, 8, o->mode);
}

static void put_owners(struct line *l, const struct object_shm *o)
{
	put_unsigned(l, 5, o->uid);
	put_unsigned(l, 5, o->gid);
	put_unsigned(l, 5, o->cuid);
	put_unsigned(l, 5, o->cgid);
}

/* ---- Families ---------------------------------------------------------------------------- */

/* The line of the object at an index; false: there is none. */
typedef bool line_fn(struct thread_block *tb, int32_t ix, struct line *l);

static bool msg_line(struct thread_block *tb, int32_t ix, struct line *l)
{
	struct msg_status st;
	int rc;

	do {
		call_enter(tb);
		rc = msg_stat(&tb->caller, ix, true, true, &st);
	} while (call_again(tb, rc));
	if (rc < 0)
		return false;
	put_object(l, st.object.key, st.id, &st.object);
	put_char(l, ' ');
	put_unsigned(l, 10, st.bytes);
	put_unsigned(l, 10, st.count);
	put_unsigned(l, 5, st.lspid);
	put_unsigned(l, 5, st.lrpid);
	put_owners(l, &st.object);
	put_unsigned(l, 10, (uint64_t)st.stime);
	put_unsigned(l, 10, (uint64_t)st.rtime);
	put_unsigned(l, 10, (uint64_t)st.object.ctime);
	return true;
}

static bool sem_line(struct thread_block *tb, int32_t ix, struct line *l)
{
	struct sem_status st;

	if (call_sem_stat(tb, ix, true, true, &st) < 0)
		return false;
	put_object(l, st.object.key, st.id, &st.object);
	put_unsigned(l, 10, st.nsems);
	put_owners(l, &st.object);
	put_unsigned(l, 10, (uint64_t)st.otime);
	put_unsigned(l, 10, (uint64_t)st.object.ctime);
	return true;
}

#if UINTPTR_MAX > UINT32_MAX
#define BYTES_WIDTH 21
#define SHM_HEADER                                                                                 \
	"       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  " \
	"cgid      atime      dtime      ctime                   rss                  swap\n"
#else
#define BYTES_WIDTH 10
#define SHM_HEADER                                                                                 \
	"       key      shmid perms       size  cpid  lpid nattch   uid   gid  cuid  cgid      "  \
	"atime      dtime      ctime        rss       swap\n"
#endif

static bool shm_line(struct thread_block *tb, int32_t ix, struct line *l)
{
	const struct segment_shm *s;
	struct shm_status st;
	uint64_t attached = 0;

	if (attach_stat(tb, ix, true, true, &l->census, &st, &attached) < 0)
		return false;
	s = &st.segment;
	put_object(l, s->object.mode & SEGMENT_DEST ? 0 : s->object.key, st.id, &s->object);
	put_unsigned(l, BYTES_WIDTH, s->bytes);
	put_unsigned(l, 5, s->cpid);
	put_unsigned(l, 5, s->lpid);
	put_char(l, ' ');
	put_unsigned(l, 5, attached);
	put_owners(l, &s->object);
	put_unsigned(l, 10, (uint64_t)s->atime);
	put_unsigned(l, 10, (uint64_t)s->dtime);
	put_unsigned(l, 10, (uint64_t)s->object.ctime);
	put_unsigned(l, BYTES_WIDTH, attach_file_pages(s) * PAGE_BYTES);
	put_unsigned(l, BYTES_WIDTH, 0); /* tmpfs does not tell what is in swap */
	return true;
}

/* ---- The views ---------------------------------------------------------------------------- */

/* One number of a file; 64 bits in the limits, or 32 bits of next_id. */
struct number {
	uint16_t offset; /* in struct header_shm */
	bool is_id;
	int error; /* for what is out of range */
	uint64_t most;
};

struct view {
	const char *path;
	/* a list */
	enum family family;
	const char *header; /* null: numbers */
	line_fn *line;
	/* numbers */
	unsigned count;
	struct number numbers[4];
};

#define KERNEL "/proc/sys/kernel/"
#define LIMIT(name, most, error)                                                                   \
	{                                                                                          \
		offsetof(struct header_shm, limits.name), false, error, most                       \
	}
#define ONE_LIMIT(name, most)                                                                      \
	{                                                                                          \
		.path = KERNEL #name, .count = 1, .numbers = { LIMIT(name, most, -EINVAL) }        \
	}
#define NEXT_ID(name, family)                                                                      \
	{                                                                                          \
		.path = KERNEL name "_next_id", .count = 1,                                        \
		.numbers = {{offsetof(struct header_shm, table) +                                  \
				     (family) * sizeof(struct table_shm) +                         \
				     offsetof(struct table_shm, next_id),                          \
			     true, -EINVAL, INT_MAX}},                                             \
	}

static const struct view views[] = {
	{
		.path = "/proc/sysvipc/msg",
		.family = FAMILY_MSG,
		.header = "       key      msqid perms      cbytes       qnum lspid lrpid   uid   "
			  "gid  cuid  cgid      stime      rtime      ctime\n",
		.line = msg_line,
	},
	{
		.path = "/proc/sysvipc/sem",
		.family = FAMILY_SEM,
		.header = "       key      semid perms      nsems   uid   gid  cuid  cgid      "
			  "otime      ctime\n",
		.line = sem_line,
	},
	{
		.path = "/proc/sysvipc/shm",
		.family = FAMILY_SHM,
		.header = SHM_HEADER,
		.line = shm_line,
	},
	{
		.path = KERNEL "sem",
		.count = 4,
		.numbers = {LIMIT(semmsl, INT_MAX, -EINVAL), LIMIT(semmns, INT_MAX, -EINVAL),
			    LIMIT(semopm, INT_MAX, -EINVAL),
			    LIMIT(semmni, OBJECT_CAPACITY, -ERANGE)},
	},
	ONE_LIMIT(msgmax, INT_MAX),
	ONE_LIMIT(msgmnb, INT_MAX),
	ONE_LIMIT(msgmni, OBJECT_CAPACITY),
	ONE_LIMIT(shmmax, ULONG_MAX),
	ONE_LIMIT(shmall, ULONG_MAX),
	ONE_LIMIT(shmmni, OBJECT_CAPACITY),
	ONE_LIMIT(shm_rmid_forced, 1),
	NEXT_ID("msg", FAMILY_MSG),
	NEXT_ID("sem", FAMILY_SEM),
	NEXT_ID("shm", FAMILY_SHM),
};

const int view_count = sizeof(views) / sizeof(views[0]);

const char *view_path(int view)
{
	return views[view].path;
}

/* For who only looks: what there is, if there is something. */
static struct thread_block *existing(void)
{
	int error;

	if (!session_attached())
		session_attach_early();
	return session_attached() ? session_thread(&error) : NULL;
}

/* ---- Permission --------------------------------------------------------------------------- */

/* Who has the namespace is to it what root is to the kernel's. */
static bool is_owner(void)
{
	uint32_t euid = creds_current()->euid;
	uid_t owner;

	return euid == 0 || !session_owner(&owner) || owner == euid;
}

void view_stat(int view, mode_t *ret_mode, uid_t *ret_uid, gid_t *ret_gid)
{
	const struct view *v = &views[view];

	*ret_mode = S_IFREG | (v->header || v->numbers[0].is_id ? 0444 : 0644);
	*ret_gid = 0;
	if (!session_owner(ret_uid))
		*ret_uid = creds_current()->euid;
}

int view_access(int view, int mode)
{
	int error;

	if (mode & X_OK)
		return -EACCES;
	if (!(mode & W_OK))
		return 0;
	/* What is written goes into a namespace: there must be one by then. */
	return views[view].header || !session_thread(&error) || !is_owner() ? -EACCES : 0;
}

/* ---- Reading ------------------------------------------------------------------------------ */

struct page {
	size_t length;
	int error;
	int (*put)(void *context, const char *text, size_t bytes);
	void *context;
	char text[4096];
};

static void flush(struct page *p)
{
	if (p->length && p->error >= 0)
		p->error = p->put(p->context, p->text, p->length);
	p->length = 0;
}

static void add(struct page *p, const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (p->length == sizeof(p->text))
			flush(p);
		p->text[p->length++] = text[i];
	}
}

static void add_line(struct page *p, struct line *l)
{
	put_char(l, '\n');
	add(p, l->text, l->length);
	l->length = 0;
}

static void add_list(struct page *p, const struct view *v)
{
	struct thread_block *tb = existing();
	struct line l = {0};
	int32_t highest;

	for (const char *s = v->header; *s; s++)
		add(p, s, 1);
	highest = tb ? ids_highest(tb->caller.base, v->family) : -1;
	if (tb && v->family == FAMILY_SHM)
		attach_begin_list(tb, &l.census);
	for (int32_t ix = 0; ix <= highest && p->error >= 0; ix++)
		if (v->line(tb, ix, &l))
			add_line(p, &l);
	attach_census_end(&l.census);
}

/* h: null for the limits of a new namespace. */
static uint64_t limit_of(const struct header_shm *h, const struct number *n)
{
	const unsigned char *limits = (const void *)(h ? &h->limits : &region_default_limits);
	const unsigned char *at = limits + (n->offset - offsetof(struct header_shm, limits));

	return load_relaxed((const uint64_t *)(const void *)at); /* a limit: any time's */
}

static int32_t next_id_of(const struct header_shm *h, const struct number *n)
{
	const unsigned char *at = (const unsigned char *)h + n->offset;

	return h ? load_relaxed((const int32_t *)(const void *)at) : -1; /* a wish: any time's */
}

static void add_numbers(struct page *p, const struct view *v)
{
	struct thread_block *tb = existing();
	const struct header_shm *h = tb ? region_header(tb->caller.base) : NULL;
	struct line l = {0};

	for (unsigned i = 0; i < v->count; i++) {
		const struct number *n = &v->numbers[i];

		if (i)
			put_char(&l, '\t');
		if (n->is_id)
			put_signed(&l, 0, next_id_of(h, n));
		else
			put_number(&l, 0, 10, limit_of(h, n));
	}
	add_line(p, &l);
}

int view_text(int view, int (*put)(void *context, const char *text, size_t bytes), void *context)
{
	struct page p = {.put = put, .context = context};

	if (views[view].header)
		add_list(&p, &views[view]);
	else
		add_numbers(&p, &views[view]);
	flush(&p);
	return p.error < 0 ? p.error : 0;
}

/* ---- Writing ------------------------------------------------------------------------------ */

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/* A number as strtoul() reads it with base 0, up to a blank or the end; null: it is none. */
static const char *read_number(const char *s, const char *end, bool *ret_negative, uint64_t *ret)
{
	uint64_t n = 0;
	int base = 10;
	const char *first;

	*ret_negative = s < end && *s == '-';
	s += *ret_negative;
	if (s < end && *s == '0') {
		base = 8;
		if (end - s > 2 && (s[1] == 'x' || s[1] == 'X') && digit_of(s[2]) < 16) {
			base = 16;
			s += 2;
		}
	}
	for (first = s; s < end && digit_of(*s) < base; s++)
		if (__builtin_mul_overflow(n, (uint64_t)base, &n) ||
		    __builtin_add_overflow(n, (uint64_t)digit_of(*s), &n))
			return NULL;
	if (s == first || (s < end && *s != ' ' && *s != '\t' && *s != '\n'))
		return NULL;
	*ret = n;
	return s;
}

static void set_number(struct header_shm *h, const struct number *n, uint64_t value)
{
	unsigned char *at = (unsigned char *)h + n->offset;

	/* Who creates an object at this moment may see the old one. */
	if (n->is_id)
		store_relaxed((int32_t *)(void *)at, (int32_t)value); /* a single number */
	else
		store_relaxed((uint64_t *)(void *)at, value); /* a single number */
}

int view_write(int view, const char *text, size_t bytes)
{
	const struct view *v = &views[view];
	const char *s = text, *end = text + (bytes < VIEW_WRITE_MAX ? bytes : VIEW_WRITE_MAX);
	struct thread_block *tb;
	struct header_shm *h;
	unsigned i;
	int error = 0;

	if (v->header)
		return -EIO;
	if (!is_owner())
		return -EPERM;
	tb = session_thread(&error);
	if (!tb)
		return error;
	h = region_header(tb->caller.base);
	for (i = 0; i < v->count; i++) {
		const struct number *n = &v->numbers[i];
		bool negative;
		uint64_t value;

		while (s < end && is_blank(*s))
			s++;
		if (s == end)
			break;
		s = read_number(s, end, &negative, &value);
		if (!s)
			return -EINVAL;
		if (negative || value > n->most)
			return n->error;
		set_number(h, n, value);
	}
	if (i == 0)
		return -EINVAL;
	/* From now on segments go with their creators: those whose have gone already, go now. */
	if (v->numbers[0].offset == offsetof(struct header_shm, limits.shm_rmid_forced) &&
	    h->limits.shm_rmid_forced)
		attach_sweep(tb);
	while (s < end && is_blank(*s))
		s++;
	return s < end ? (int)(s - text) : (int)bytes;
}
