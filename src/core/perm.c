// SPDX-License-Identifier: MIT
/* Permission; see the header. The class is decided once: no fall-through to a kinder one. */
#include "core/perm.h"

#include <errno.h>

static bool in_group(const struct creds *who, uint32_t gid)
{
	if (who->fsgid == gid)
		return true;
	for (size_t i = 0; i < who->group_count; i++)
		if (who->groups[i] == gid)
			return true;
	return false;
}

int perm_check(const struct caller *c, const struct object_shm *o, uint32_t wanted)
{
	const struct creds *who = c->creds;
	uint32_t mode = o->mode;

	if (who->euid == o->cuid || who->euid == o->uid)
		mode >>= 6;
	else if (in_group(who, o->cgid) || in_group(who, o->gid))
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

	if (who->euid == o->cuid || who->euid == o->uid || who->cap_sys_admin)
		return 0;
	return -EPERM;
}
