// SPDX-License-Identifier: MIT
/* The reaper's office; the protocol OFFICE_P1 is in the header. */
#include "client/office.h"

#include <stddef.h>

#include "base/atomic.h"
#include "base/ident.h"
#include "client/session_priv.h"
#include "core/region.h"

/* The process slot of the reaper that the link names; null: it names none. */
static const struct proc_shm *reaper_of(const unsigned char *base, uint32_t link)
{
	const struct thread_shm *t = link ? region_thread(base, link - 1) : NULL;
	const struct proc_shm *p;

	/* OFFICE_P1/A */
	if (!t || !(CLAIM_GEN(load_acquire(&t->claim)) & 1))
		return NULL;
	p = region_proc(base, t->proc_ix);
	/* OFFICE_P1/A */
	if (!p || load_acquire(&p->state) != PROC_LIVE || !(load_acquire(&p->flags) & PROC_REAPER))
		return NULL;
	return p;
}

enum ident_state office_state_of(const struct proc_shm *p)
{
	uint32_t view =
		session_registered() ? session_pid_view() : 0; /* asking takes system calls */

	if (p->pid_view == 0 || (!view && ident_view(&view) < 0) || view != p->pid_view)
		return IDENT_UNKNOWN;
	return ident_process((pid_t)p->pid, p->start);
}

/*
 * A reaper executes no other program, so it is alive as long as its process is: that costs one look
 * into /proc, where the engine's question may open the region and so wake other reapers.
 */
static bool in_office(struct caller *c, uint32_t link)
{
	const struct proc_shm *p = reaper_of(c->base, link);

	if (!p)
		return false;
	return link - 1 == c->thread_ix || office_state_of(p) == IDENT_ALIVE ||
	       !c->ops->is_dead(c, link - 1, true);
}

bool office_held(struct caller *c)
{
	/* OFFICE_P1/AR. Read by writing nothing: so a reaper who leaves later sees what came
	 * before. */
	return in_office(c, fetch_or(&region_header(c->base)->reaper_link, 0));
}

bool office_take(struct caller *c)
{
	uint32_t *word = &region_header(c->base)->reaper_link;
	uint32_t link = load_acquire(word); /* OFFICE_P1/A */

	if (link == c->thread_ix + 1)
		return true;
	if (in_office(c, link))
		return false;
	return cas(word, &link, c->thread_ix + 1); /* OFFICE_P1/AR */
}

void office_leave(struct caller *c)
{
	uint32_t link = c->thread_ix + 1;

	/* OFFICE_P1/R */
	(void)cas(&region_header(c->base)->reaper_link, &link, 0); /* false: it was not ours */
}

uint32_t office_view(const unsigned char *base)
{
	/* OFFICE_P1/A */
	const struct proc_shm *p = reaper_of(base, load_acquire(&region_header(base)->reaper_link));

	return p ? p->pid_view : 0;
}

uint32_t office_pid(const unsigned char *base)
{
	/* OFFICE_P1/A */
	const struct proc_shm *p = reaper_of(base, load_acquire(&region_header(base)->reaper_link));

	if (!p)
		return 0;
	switch (office_state_of(p)) {
	case IDENT_GONE:
	case IDENT_EXITING:
		return 0;
	default:
		return p->pid;
	}
}
