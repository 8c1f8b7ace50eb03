// SPDX-License-Identifier: MIT
/*
 * conform-perm FAMILY: who may do what, the order of the checks of the ctl calls, and what a
 * reader in another user namespace sees. Shared by the three families.
 *
 * Most tests need root, to become somebody else in children.
 */
#include "conform/family.h"

#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>

enum {
	KEY = 1,
	CREATOR_UID = 100,
	CREATOR_GID = 200,
	OWNER_UID = 101,
	OWNER_GID = 201,
	OTHER_UID = 102,
	OTHER_GID = 202,
};

static const struct identity creator = {.uid = CREATOR_UID, .gid = CREATOR_GID};
static const struct identity owner = {.uid = OWNER_UID, .gid = OWNER_GID};
static const struct identity other = {.uid = OTHER_UID, .gid = OTHER_GID};

/* An object with this mode whose creator and owner are different ordinary users. */
static int object_of_others(int mode)
{
	union object_ds ds;
	pid_t kid;
	int id;

	/* Who changes identity must have met the namespace before: it may not get in later. */
	CHECK_ERR(family->get(test_key(KEY), 0), ENOENT);
	IN_CHILD (kid) {
		become(&creator);
		board->number[60] = CHECK_OK(family->get(test_key(KEY), IPC_CREAT | 0600));
	}
	child_ok(kid);
	id = family->own((int)board->number[60]);
	ds = family_stat(id);
	ds.perm.uid = OWNER_UID;
	ds.perm.gid = OWNER_GID;
	ds.perm.mode = (unsigned short)mode;
	CHECK_OK(family->ctl(id, IPC_SET, &ds));
	return id;
}

/* Whether this process passes the check for these rights (4 read, 2 write, 1 neither). */
static bool may(int rights)
{
	if (family->get(test_key(KEY), rights << 6) != -1)
		return true;
	CHECK_INT(errno, EACCES);
	return false;
}

/* ---- the permission check ---- */

static const struct perm_case {
	const char *who;
	struct identity identity;
	int mode;
	bool read;
	bool write;
} perm_cases[] = {
	{"owner by its class", {OWNER_UID, OTHER_GID, 0, {0}}, 0600, true, true},
	{"owner, read only", {OWNER_UID, OTHER_GID, 0, {0}}, 0400, true, false},
	{"owner, write only", {OWNER_UID, OTHER_GID, 0, {0}}, 0200, false, true},
	{"creator counts as owner", {CREATOR_UID, OTHER_GID, 0, {0}}, 0600, true, true},
	{"owner falls not through", {OWNER_UID, OWNER_GID, 0, {0}}, 0066, false, false},
	{"creator falls not through", {CREATOR_UID, CREATOR_GID, 0, {0}}, 0066, false, false},
	{"group", {OTHER_UID, OWNER_GID, 0, {0}}, 0060, true, true},
	{"group, read only", {OTHER_UID, OWNER_GID, 0, {0}}, 0646, true, false},
	{"creator's group", {OTHER_UID, CREATOR_GID, 0, {0}}, 0060, true, true},
	{"supplementary group", {OTHER_UID, OTHER_GID, 2, {300, OWNER_GID}}, 0020, false, true},
	{"creator's, supplementary", {OTHER_UID, OTHER_GID, 1, {CREATOR_GID}}, 0040, true, false},
	{"group falls not through", {OTHER_UID, OWNER_GID, 0, {0}}, 0606, false, false},
	{"nor does supplementary", {OTHER_UID, OTHER_GID, 1, {OWNER_GID}}, 0606, false, false},
	{"other", {OTHER_UID, OTHER_GID, 0, {0}}, 0006, true, true},
	{"other, nothing", {OTHER_UID, OTHER_GID, 1, {300}}, 0660, false, false},
	{"other, read only", {OTHER_UID, OTHER_GID, 0, {0}}, 0664, true, false},
	{"root", {0, OTHER_GID, 0, {0}}, 0000, true, true},
};

static void perm_class_decides_alone(void **state)
{
	(void)state;
	need_users();
	for (size_t i = 0; i < ARRAY_COUNT(perm_cases); i++) {
		const struct perm_case *c = &perm_cases[i];
		int id = object_of_others(c->mode);
		union object_ds ds;
		pid_t kid;

		IN_CHILD (kid) {
			become(&c->identity);
			if (may(4) != c->read || may(2) != c->write)
				check_fail(__FILE__, __LINE__, "%s: wrong answer", c->who);
			if (may(6) != (c->read && c->write))
				check_fail(__FILE__, __LINE__, "%s: wrong for both", c->who);
			/* The same rule guards a ctl call. */
			if ((family->ctl(id, IPC_STAT, &ds) == 0) != c->read)
				check_fail(__FILE__, __LINE__, "%s: IPC_STAT differs", c->who);
		}
		child_ok(kid);
		CHECK_OK(family->ctl(id, IPC_RMID, NULL));
	}
}

/* All nine bits of a get's flags are folded into three before they are compared. */
static void get_folds_the_mode_bits_of_the_flags(void **state)
{
	static const struct {
		int mode;
		int flags;
		bool allowed;
	} cases[] = {
		{0000, 0000, true},  {0004, 0400, true},  {0004, 0040, true},  {0004, 0004, true},
		{0004, 0200, false}, {0004, 0020, false}, {0004, 0002, false}, {0004, 0600, false},
		{0004, 0420, false}, {0004, 0444, true},  {0002, 0222, true},  {0002, 0242, false},
		{0006, 0666, true},  {0001, 0111, true},  {0006, 0100, false}, {0770, 0004, false},
		{0007, 0777, true},
	};
	int id;

	(void)state;
	need_users();
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		pid_t kid;

		id = object_of_others(cases[i].mode);
		IN_CHILD (kid) {
			become(&other);
			if (cases[i].allowed)
				CHECK_INT(family->get(test_key(KEY), cases[i].flags), id);
			else
				CHECK_ERR(family->get(test_key(KEY), cases[i].flags), EACCES);
		}
		child_ok(kid);
		CHECK_OK(family->ctl(id, IPC_RMID, NULL));
	}
}

static void get_eexist_beats_eacces(void **state)
{
	pid_t kid;

	(void)state;
	need_users();
	(void)object_of_others(0000);
	IN_CHILD (kid) {
		become(&other);
		CHECK_ERR(family->get(test_key(KEY), IPC_CREAT | IPC_EXCL | 0600), EEXIST);
		CHECK_ERR(family->get(test_key(KEY), IPC_CREAT | 0600), EACCES);
	}
	child_ok(kid);
}

static void perm_user_is_the_effective_one(void **state)
{
	pid_t kid;

	(void)state;
	need_users();
	(void)object_of_others(0600);
	IN_CHILD (kid) {
		CHECK_OK(setresgid(OTHER_GID, OTHER_GID, OTHER_GID));
		CHECK_OK(setresuid(OWNER_UID, OTHER_UID, OTHER_UID));
		CHECK(!may(4));
		CHECK_OK(seteuid(OWNER_UID));
		CHECK(may(4));
		CHECK_OK(seteuid(OTHER_UID));
		CHECK(!may(4));
	}
	child_ok(kid);
	IN_CHILD (kid) {
		/* Not the one for files. */
		CHECK_OK(setresuid(OWNER_UID, OTHER_UID, OTHER_UID));
		(void)setfsuid(OWNER_UID);
		CHECK_INT(setfsuid((uid_t)-1), OWNER_UID);
		CHECK(!may(4));
	}
	child_ok(kid);
}

static void perm_group_is_the_one_for_files(void **state)
{
	pid_t kid;

	(void)state;
	need_users();
	(void)object_of_others(0060);
	IN_CHILD (kid) {
		CHECK_OK(setgroups(0, NULL));
		CHECK_OK(setresgid(OTHER_GID, OTHER_GID, OTHER_GID));
		(void)setfsgid(OWNER_GID);
		CHECK_OK(setresuid(OTHER_UID, OTHER_UID, OTHER_UID));
		CHECK_INT(setfsgid((gid_t)-1), OWNER_GID);
		CHECK(may(4));
	}
	child_ok(kid);
	IN_CHILD (kid) {
		CHECK_OK(setgroups(0, NULL));
		CHECK_OK(setresgid(OWNER_GID, OWNER_GID, OWNER_GID));
		(void)setfsgid(OTHER_GID);
		CHECK_OK(setresuid(OTHER_UID, OTHER_UID, OTHER_UID));
		CHECK(!may(4));
	}
	child_ok(kid);
}

/* Becomes this user but keeps one capability, or none at all for root without power. */
static void become_with(const struct identity *who, uint64_t capabilities)
{
	CHECK_OK(prctl(PR_SET_KEEPCAPS, 1));
	become(who);
	keep_capabilities(capabilities);
}

static void perm_cap_ipc_owner_passes_every_check(void **state)
{
	union object_ds ds;
	pid_t kid;
	int id;

	(void)state;
	need_users();
	id = object_of_others(0000);
	IN_CHILD (kid) {
		become_with(&other, UINT64_C(1) << CAP_IPC_OWNER);
		CHECK(may(7));
		CHECK_OK(family->ctl(id, IPC_STAT, &ds));
		/* It is of no use for these. */
		CHECK_ERR(family->ctl(id, IPC_SET, &ds), EPERM);
		CHECK_ERR(family->ctl(id, IPC_RMID, NULL), EPERM);
	}
	child_ok(kid);
	IN_CHILD (kid) {
		keep_capabilities(0);
		CHECK(!may(4));
		CHECK_ERR(family->ctl(id, IPC_STAT, &ds), EACCES);
	}
	child_ok(kid);
}

static void perm_cap_sys_admin_may_set_and_remove(void **state)
{
	union object_ds ds;
	pid_t kid;
	int id;

	(void)state;
	need_users();
	id = object_of_others(0000);
	ds = family_stat(id);
	IN_CHILD (kid) {
		become_with(&other, UINT64_C(1) << CAP_SYS_ADMIN);
		CHECK(!may(4));
		CHECK_OK(family->ctl(id, IPC_SET, &ds));
		CHECK_OK(family->ctl(id, IPC_RMID, NULL));
	}
	child_ok(kid);
}

/* ---- IPC_STAT, IPC_SET, IPC_RMID ---- */

static void stat_needs_read_permission_even_of_the_owner(void **state)
{
	union object_ds ds;
	pid_t kid;
	int id;

	(void)state;
	need_users();
	id = object_of_others(0200);
	IN_CHILD (kid) {
		become(&owner);
		CHECK_ERR(family->ctl(id, IPC_STAT, &ds), EACCES);
	}
	child_ok(kid);
}

static void set_and_rmid_need_no_mode_bits(void **state)
{
	static const struct identity *const who[] = {&owner, &creator};

	(void)state;
	need_users();
	for (size_t i = 0; i < ARRAY_COUNT(who); i++) {
		int id = object_of_others(0000);
		union object_ds ds = family_stat(id);
		pid_t kid;

		IN_CHILD (kid) {
			become(who[i]);
			CHECK_OK(family->ctl(id, IPC_SET, &ds));
			CHECK_OK(family->ctl(id, IPC_RMID, NULL));
			CHECK_ERR(family->ctl(id, IPC_SET, &ds), EINVAL);
		}
		child_ok(kid);
	}
}

static void set_and_rmid_are_eperm_for_others_whatever_the_mode(void **state)
{
	static const struct identity who[] = {
		{OTHER_UID, OTHER_GID, 0, {0}},
		{OTHER_UID, OWNER_GID, 1, {CREATOR_GID}},
	};
	union object_ds ds;
	pid_t kid;
	int id;

	(void)state;
	need_users();
	id = object_of_others(0777);
	ds = family_stat(id);
	for (size_t i = 0; i < ARRAY_COUNT(who); i++) {
		IN_CHILD (kid) {
			become(&who[i]);
			CHECK_ERR(family->ctl(id, IPC_SET, &ds), EPERM);
			CHECK_ERR(family->ctl(id, IPC_RMID, NULL), EPERM);
		}
		child_ok(kid);
	}
}

static void set_changes_owner_group_mode_and_ctime_alone(void **state)
{
	int id = family->own((int)CHECK_OK(family->get(test_key(KEY), IPC_CREAT | 0600)));
	union object_ds before = family_stat(id);
	union object_ds ds = before;

	(void)state;
	pass_second(family->ctime_of(&before));
	ds.perm.uid = geteuid();
	ds.perm.gid = getegid();
	ds.perm.cuid = 4711;
	ds.perm.cgid = 4711;
	ds.perm.__key = test_key(KEY + 1);
	ds.perm.__seq = 99;
	ds.perm.mode = 0640;
	CHECK_OK(family->ctl(id, IPC_SET, &ds));
	ds = family_stat(id);
	CHECK_INT(ds.perm.mode, 0640);
	CHECK_INT(ds.perm.cuid, before.perm.cuid);
	CHECK_INT(ds.perm.cgid, before.perm.cgid);
	CHECK_INT(ds.perm.__key, before.perm.__key);
	CHECK_INT(ds.perm.__seq, before.perm.__seq);
	CHECK(family->ctime_of(&ds) > family->ctime_of(&before));
	CHECK(family->ctime_of(&ds) <= second_after());
	CHECK_INT(family->get(test_key(KEY), 0), id);
}

static void set_gives_the_object_away(void **state)
{
	union object_ds ds;
	int id;

	(void)state;
	need_users();
	id = object_of_others(0600);
	ds = family_stat(id);
	CHECK_INT(ds.perm.uid, OWNER_UID);
	CHECK_INT(ds.perm.gid, OWNER_GID);
	CHECK_INT(ds.perm.cuid, CREATOR_UID);
	CHECK_INT(ds.perm.cgid, CREATOR_GID);
}

static void set_uses_only_nine_mode_bits(void **state)
{
	int id = family_new(0600);
	union object_ds ds = family_stat(id);

	(void)state;
	ds.perm.mode = 07655;
	CHECK_OK(family->ctl(id, IPC_SET, &ds));
	CHECK_INT(family_stat(id).perm.mode, 0655);
}

static void set_of_an_unmappable_owner_is_einval(void **state)
{
	int id = family_new(0600);
	union object_ds ds = family_stat(id);

	(void)state;
	ds.perm.uid = (uid_t)-1;
	ds.perm.mode = 0777;
	CHECK_ERR(family->ctl(id, IPC_SET, &ds), EINVAL);
	ds.perm.uid = geteuid();
	ds.perm.gid = (gid_t)-1;
	CHECK_ERR(family->ctl(id, IPC_SET, &ds), EINVAL);
	ds = family_stat(id);
	CHECK_INT(ds.perm.mode, 0600);
	CHECK_INT(ds.perm.uid, geteuid());
}

static void rmid_makes_the_id_einval(void **state)
{
	int id = family_new(0600);
	union object_ds ds = family_stat(id);

	(void)state;
	CHECK_INT(family->ctl(id, IPC_RMID, NULL), 0);
	CHECK_ERR(family->ctl(id, IPC_RMID, NULL), EINVAL);
	CHECK_ERR(family->ctl(id, IPC_STAT, &ds), EINVAL);
	CHECK_ERR(family->ctl(id, IPC_SET, &ds), EINVAL);
}

/* ---- the order of the checks ---- */

static void ctl_negative_id_or_command_is_einval(void **state)
{
	static const int cmds[] = {IPC_STAT, IPC_SET, IPC_RMID, IPC_INFO};
	int id = family_new(0600);
	union object_ds ds = family_stat(id);

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cmds); i++) {
		CHECK_ERR(family->ctl(-1, cmds[i], &ds), EINVAL);
		CHECK_ERR(family->ctl(INT_MIN, cmds[i], &ds), EINVAL);
		/* Before anything is read or written. */
		CHECK_ERR(family->ctl(-1, cmds[i], BAD_POINTER), EINVAL);
	}
	CHECK_ERR(family->ctl(id, -1, &ds), EINVAL);
	CHECK_ERR(family->ctl(id, INT_MIN, &ds), EINVAL);
}

static void ctl_unknown_command_is_einval(void **state)
{
	static const int cmds[] = {4, 10, 50, 99, 12345, INT_MAX};
	int id = family_new(0600);

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cmds); i++) {
		CHECK_ERR(family->ctl(id, cmds[i], BAD_POINTER), EINVAL);
		CHECK_ERR(family->ctl(INT_MAX, cmds[i], BAD_POINTER), EINVAL);
	}
}

static void stat_bad_id_then_eacces_then_efault(void **state)
{
	pid_t kid;
	int id;

	(void)state;
	CHECK_ERR(family->ctl(INT_MAX, IPC_STAT, BAD_POINTER), EINVAL);
	CHECK_ERR(family->ctl(family_new(0600), IPC_STAT, BAD_POINTER), EFAULT);
	need_users();
	id = object_of_others(0000);
	IN_CHILD (kid) {
		become(&other);
		CHECK_ERR(family->ctl(id, IPC_STAT, BAD_POINTER), EACCES);
	}
	child_ok(kid);
}

static void set_efault_then_bad_id_then_eperm(void **state)
{
	union object_ds ds;
	pid_t kid;
	int id;

	(void)state;
	memset(&ds, 0, sizeof(ds));
	CHECK_ERR(family->ctl(INT_MAX, IPC_SET, BAD_POINTER), EFAULT);
	CHECK_ERR(family->ctl(INT_MAX, IPC_SET, &ds), EINVAL);
	need_users();
	id = object_of_others(0777);
	IN_CHILD (kid) {
		become(&other);
		CHECK_ERR(family->ctl(id, IPC_SET, BAD_POINTER), EFAULT);
		CHECK_ERR(family->ctl(id, IPC_SET, &ds), EPERM);
		ds.perm.uid = (uid_t)-1;
		CHECK_ERR(family->ctl(id, IPC_SET, &ds), EPERM);
	}
	child_ok(kid);
}

static void info_copies_out_or_is_efault(void **state)
{
	(void)state;
	CHECK_ERR(family->ctl(0, IPC_INFO, BAD_POINTER), EFAULT);
	CHECK_ERR(family->ctl(0, family->info, BAD_POINTER), EFAULT);
}

static void index_stat_needs_read_permission_but_the_any_form_does_not(void **state)
{
	union object_ds ds;
	pid_t kid;
	int index;
	int id;

	(void)state;
	need_users();
	id = object_of_others(0660);
	index = id & 0x7fff;
	IN_CHILD (kid) {
		become(&other);
		CHECK_ERR(family->ctl(index, family->stat_index, &ds), EACCES);
		memset(&ds, 0, sizeof(ds));
		CHECK_INT(family->ctl(index, family->stat_index_any, &ds), id);
		CHECK_INT(ds.perm.mode, 0660);
		CHECK_INT(ds.perm.uid, OWNER_UID);
		CHECK_ERR(family->ctl(index, family->stat_index, BAD_POINTER), EACCES);
		CHECK_ERR(family->ctl(index, family->stat_index_any, BAD_POINTER), EFAULT);
	}
	child_ok(kid);
}

static void proc_view_needs_no_permission(void **state)
{
	pid_t kid;

	(void)state;
	need_users();
	(void)object_of_others(0000);
	IN_CHILD (kid) {
		char text[1024];

		become(&other);
		read_file(family->proc_path, text, sizeof(text));
		CHECK(strlen(text) > strlen(family->proc_header));
	}
	child_ok(kid);
}

/* ---- other namespaces ---- */

static void reader_in_another_user_namespace_sees_the_overflow_id(void **state)
{
	pid_t kid;
	int id;

	(void)state;
	compat_skip("user-namespaces");
	id = family_new(0666);
	IN_CHILD (kid) {
		union object_ds ds;

		if (unshare(CLONE_NEWUSER) != 0)
			_exit(CHILD_SKIPPED);
		ds = family_stat(id);
		CHECK_INT(ds.perm.uid, 65534);
		CHECK_INT(ds.perm.cgid, 65534);
		CHECK_ERR(family->ctl(id, IPC_SET, &ds), EINVAL);
	}
	child_ok_or_skip(kid, "no user namespace can be made here");
}

static void namespace_of_ones_own_is_empty(void **state)
{
	pid_t kid;
	int id;

	(void)state;
	compat_skip("ipc-namespaces");
	id = family->own((int)CHECK_OK(family->get(test_key(KEY), IPC_CREAT | 0600)));
	IN_CHILD (kid) {
		union object_ds ds;

		if (unshare(CLONE_NEWIPC) != 0)
			_exit(CHILD_SKIPPED);
		CHECK_ERR(family->get(test_key(KEY), 0), ENOENT);
		CHECK_ERR(family->ctl(id, IPC_STAT, &ds), EINVAL);
		CHECK_INT(family->get(test_key(KEY), IPC_CREAT | 0600), 0);
	}
	child_ok_or_skip(kid, "no IPC namespace can be made here");
	CHECK_INT(family->get(test_key(KEY), 0), id);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(perm_class_decides_alone),
		TEST(get_folds_the_mode_bits_of_the_flags),
		TEST(get_eexist_beats_eacces),
		TEST(perm_user_is_the_effective_one),
		TEST(perm_group_is_the_one_for_files),
		TEST(perm_cap_ipc_owner_passes_every_check),
		TEST(perm_cap_sys_admin_may_set_and_remove),
		TEST(stat_needs_read_permission_even_of_the_owner),
		TEST(set_and_rmid_need_no_mode_bits),
		TEST(set_and_rmid_are_eperm_for_others_whatever_the_mode),
		TEST(set_changes_owner_group_mode_and_ctime_alone),
		TEST(set_gives_the_object_away),
		TEST(set_uses_only_nine_mode_bits),
		TEST(set_of_an_unmappable_owner_is_einval),
		TEST(rmid_makes_the_id_einval),
		TEST(ctl_negative_id_or_command_is_einval),
		TEST(ctl_unknown_command_is_einval),
		TEST(stat_bad_id_then_eacces_then_efault),
		TEST(set_efault_then_bad_id_then_eperm),
		TEST(info_copies_out_or_is_efault),
		TEST(index_stat_needs_read_permission_but_the_any_form_does_not),
		TEST(proc_view_needs_no_permission),
		TEST(reader_in_another_user_namespace_sees_the_overflow_id),
		TEST(namespace_of_ones_own_is_empty),
	};

	family_begin(&argc, &argv);
	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name(family->name, tests, NULL, NULL);
}
