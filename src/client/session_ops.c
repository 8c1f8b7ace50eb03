// SPDX-License-Identifier: MIT
/*
 * What the engine asks of this process: who is dead, by all that the kernel tells; user memory; the
 * files of segments. Nothing here changes the region, so a death in the middle changes nothing.
 */
#include "client/session_priv.h"

#include "base/ident.h"
#include "client/attach_file.h"
#include "client/office.h"
#include "client/report.h"
#include "client/spare.h"
#include "client/usercopy.h"
#include "core/procs.h"
#include "core/region.h"
#include "ipc/repair.h"

static bool is_dead(struct caller *c, uint32_t thread_ix, bool patient)
{
	uint32_t *life = region_life(c->base, thread_ix);
	struct thread_shm *t = region_thread(c->base, thread_ix);
	struct proc_shm *p;

	if (!life || !t)
		return false;
	if (load_acquire(life) & LIFE_DIED) /* LIFE_P1/A */
		return true;
	if (!patient || thread_ix == c->thread_ix)
		return false;
	p = region_proc(c->base, t->proc_ix);
	if (!p)
		return false;
	if (p->pid_view && p->pid_view == session_pid_view() && p->pid && t->tid &&
	    !ident_thread_exists((pid_t)p->pid, (pid_t)t->tid))
		return true;
	return t->proc_ix != c->proc_ix && !(p->flags & PROC_TOKENLESS) &&
	       session_token_is_free(t->proc_ix);
}

/* Has no thread of the process a life word that says it lives? All that can be known of a process
 * whose pid means nothing here and which has no token; exec looks the same. */
static bool all_marked_dead(const unsigned char *base, uint32_t proc_ix)
{
	uint32_t groups = region_group_count(base);

	for (uint32_t g = 0; g < groups; g++)
		for (uint32_t k = 0; k < GROUP_THREADS && procs_owns_group(base, proc_ix, g); k++) {
			uint32_t ix = g * GROUP_SPAN + k;

			if (!session_slot_is_free(ix) &&
			    !(load_acquire(region_known_life(base, ix)) &
			      LIFE_DIED)) /* LIFE_P1/A */
				return false;
		}
	return true;
}

/*
 * Of a process of another pid namespace, whose image has gone: with the process, or did it execute
 * another program? If /proc shows that namespace, it tells. If not, the namespace may have gone, or
 * be outside: the reaper, who mostly is outside of all, takes the process for dead, and who sees as
 * much as he does; others leave it to him.
 */
static bool is_dead_elsewhere(const unsigned char *base, const struct proc_shm *p)
{
	uint32_t own = session_pid_view();
	enum ident_state state;
	pid_t shown;

	if (!p->pid_view)
		return true;
	if (ident_try_elsewhere(p->pid_view, (pid_t)p->pid, p->start, &state, &shown) < 0)
		return false; /* to be asked again */
	return state == IDENT_EXITING ||
	       (state == IDENT_GONE && (session.adopted || (own && office_view(base) == own)));
}

static bool is_process_dead(struct caller *c, uint32_t proc_ix)
{
	struct proc_shm *p = region_proc(c->base, proc_ix);
	enum ident_state state;

	if (!p || proc_ix == c->proc_ix)
		return false;
	if (p->pid_view == 0 || p->pid_view != session_pid_view())
		return (p->flags & PROC_TOKENLESS ? all_marked_dead(c->base, proc_ix)
						  : session_token_is_free(proc_ix)) &&
		       is_dead_elsewhere(c->base, p);
	state = spare_ident_process((pid_t)p->pid, p->start);
	return state == IDENT_GONE || state == IDENT_EXITING;
}

static bool is_image_gone(struct caller *c, uint32_t proc_ix)
{
	struct proc_shm *p = region_proc(c->base, proc_ix);

	return p && proc_ix != c->proc_ix && !(p->flags & PROC_TOKENLESS) &&
	       session_token_is_free(proc_ix);
}

static void drop_segment(struct caller *c, const struct segment_shm *s)
{
	(void)c;
	attach_file_drop(s);
}

static void note_damage(struct caller *c)
{
	(void)c;
	report_damage();
}

static bool must_probe(struct caller *c)
{
	return ((struct thread_block *)c->context)->probe != 0;
}

static int copy_in(struct caller *c, void *to, const void *user, size_t n)
{
	return usercopy_in(to, user, n, must_probe(c));
}

static int copy_out(struct caller *c, void *user, const void *from, size_t n)
{
	return usercopy_out(user, from, n, must_probe(c));
}

const struct caller_ops session_ops = {
	.is_dead = is_dead,
	.is_process_dead = is_process_dead,
	.is_image_gone = is_image_gone,
	.copy_in = copy_in,
	.copy_out = copy_out,
	.repair = repair_lock,
	.note_damage = note_damage,
	.drop_segment = drop_segment,
};
