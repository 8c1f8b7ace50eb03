// SPDX-License-Identifier: MIT
/* Permission; see the header. The class is decided once: no fall-through to a kinder one. */
#include "core/perm.h"

#include <errno.h>

#include "base/atomic.h"

static bool in_group(const struct creds *who, uint32_t gid)
{
	if (who->fsgid == gid)
		return true;
	for (size_t i = 0; i < who->group_count; i++)
		if (who->groups[i] == gid)
			return true;
	return false;
}

/* Relaxed, as in perm_check(). */
static bool is_owner(const struct creds *who, const struct object_shm *o)
{
	return who->euid == load_relaxed(&o->cuid) || who->euid == load_relaxed(&o->uid);
}

/* Relaxed: without a lock any moment's owner and mode will do. */
int perm_check(const struct caller *c, const struct object_shm *o, uint32_t wanted)
{
	const struct creds *who = c->creds;
	uint32_t mode = load_relaxed(&o->mode);

	if (is_owner(who, o))
		mode >>= 6;
	else if (in_group(who, load_relaxed(&o->cgid)) || in_group(who, load_relaxed(&o->gid)))
		mode >>= 3;
	if ((wanted & ~mode & 7) == 0 || who->cap_ipc_owner)
		return 0;
	return -EACCES;
}

int perm_check_flags(const struct caller *c, const struct object_shm *o, uint32_t flags)
{
	return perm_check(c, o, (flags >> 6 | flags >> 3 | flags) & 7);
}

int perm_check_owner(const struct caller *c, const struct object_shm *o)
{
	const struct creds *who = c->creds;

	if (is_owner(who, o) || who->cap_sys_admin)
		return 0;
	return -EPERM;
}
