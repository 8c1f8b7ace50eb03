// SPDX-License-Identifier: MIT
/* Permission: the class is decided once, and capabilities are looked at last. */
#include "core/perm.h"
#include "unit.h"

struct who {
	uint32_t euid, fsgid;
	gid_t group; /* a supplementary one; 0 none */
	bool ipc_owner, sys_admin;
};

static int check(const struct who *w, uint32_t mode, uint32_t wanted)
{
	const struct object_shm o = {.mode = mode, .uid = 10, .gid = 20, .cuid = 11, .cgid = 21};
	const struct creds creds = {.euid = w->euid,
				    .egid = 99,
				    .fsgid = w->fsgid,
				    .groups = &w->group,
				    .group_count = w->group != 0,
				    .cap_ipc_owner = w->ipc_owner,
				    .cap_sys_admin = w->sys_admin};
	const struct caller c = {.creds = &creds};

	return perm_check(&c, &o, wanted);
}

static int owner(const struct who *w)
{
	const struct object_shm o = {.mode = 0, .uid = 10, .gid = 20, .cuid = 11, .cgid = 21};
	const struct creds creds = {
		.euid = w->euid, .cap_ipc_owner = w->ipc_owner, .cap_sys_admin = w->sys_admin};
	const struct caller c = {.creds = &creds};

	return perm_check_owner(&c, &o);
}

static const struct who by_uid = {.euid = 10, .fsgid = 99}, by_cuid = {.euid = 11, .fsgid = 99},
			by_gid = {.euid = 5, .fsgid = 20}, by_cgid = {.euid = 5, .fsgid = 21},
			by_group = {.euid = 5, .fsgid = 99, .group = 21},
			stranger = {.euid = 5, .fsgid = 99},
			powerful = {.euid = 5, .fsgid = 99, .ipc_owner = true},
			admin = {.euid = 5, .fsgid = 99, .sys_admin = true};

static void test_classes(void **state)
{
	(void)state;
	for (uint32_t wanted = 0; wanted <= 7; wanted++)
		for (uint32_t have = 0; have <= 7; have++) {
			int expected = (wanted & ~have) ? -EACCES : 0;

			EXPECT_INT(check(&by_uid, have << 6, wanted), expected);
			EXPECT_INT(check(&by_cuid, have << 6, wanted), expected);
			EXPECT_INT(check(&by_gid, have << 3, wanted), expected);
			EXPECT_INT(check(&by_cgid, have << 3, wanted), expected);
			EXPECT_INT(check(&by_group, have << 3, wanted), expected);
			EXPECT_INT(check(&stranger, have, wanted), expected);
			EXPECT_INT(check(&powerful, have, wanted), 0);
			EXPECT_INT(check(&admin, have, wanted), expected);
		}
}

static void test_no_fall_through(void **state)
{
	(void)state;
	EXPECT_INT(check(&by_uid, 0077, 4), -EACCES);
	EXPECT_INT(check(&by_gid, 0707, 4), -EACCES);
	EXPECT_INT(check(&stranger, 0770, 4), -EACCES);
}

static void test_flags_fold_to_a_class(void **state)
{
	const struct object_shm o = {.mode = 0640, .uid = 10, .cuid = 10, .gid = 20, .cgid = 20};
	struct creds creds = {.euid = 5, .fsgid = 20};
	const struct caller c = {.creds = &creds};

	(void)state;
	EXPECT_INT(perm_check_flags(&c, &o, 0), 0);
	EXPECT_INT(perm_check_flags(&c, &o, 0400), 0);
	EXPECT_INT(perm_check_flags(&c, &o, 0004), 0);
	EXPECT_INT(perm_check_flags(&c, &o, 0002), -EACCES);
	EXPECT_INT(perm_check_flags(&c, &o, 0600), -EACCES);
	creds.euid = 10;
	EXPECT_INT(perm_check_flags(&c, &o, 0666), 0);
	EXPECT_INT(perm_check_flags(&c, &o, 0100), -EACCES);
}

static void test_owner(void **state)
{
	(void)state;
	EXPECT_INT(owner(&by_uid), 0);
	EXPECT_INT(owner(&by_cuid), 0);
	EXPECT_INT(owner(&by_gid), -EPERM);
	EXPECT_INT(owner(&stranger), -EPERM);
	EXPECT_INT(owner(&powerful), -EPERM); /* CAP_IPC_OWNER does not help here */
	EXPECT_INT(owner(&admin), 0);
}

/* And the calls ask. */
static void test_calls_ask(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	uint16_t values[1] = {3};
	struct sem_status st;
	int32_t id;

	a->creds.euid = a->creds.fsgid = a->creds.egid = 100;
	b->creds.euid = b->creds.fsgid = b->creds.egid = 200;
	id = engine_semget(a, 77, 1, GET_CREAT | 0604);
	EXPECT(id >= 0);
	EXPECT_INT(engine_semget(b, 77, 0, 0), id);
	EXPECT_INT(engine_semget(b, 77, 0, 0600), -EACCES);
	EXPECT_INT(engine_getval(b, id, 0), 0);
	EXPECT_INT(engine_op(b, id, 0, 0, 0), 0);
	EXPECT_INT(engine_op(b, id, 0, 1, 0), -EACCES);
	EXPECT_INT(engine_setval(b, id, 0, 1), -EACCES);
	EXPECT_INT(engine_setall(b, id, values), -EACCES);
	EXPECT_INT(engine_getall(b, id, values), 0);
	EXPECT_INT(engine_rmid(b, id), -EPERM);
	EXPECT_INT(sem_set_owner(&b->c, id, 200, 200, 0666, NOW), -EPERM);
	EXPECT_INT(sem_set_owner(&a->c, id, 100, 100, 0600, NOW), 0);
	EXPECT_INT(engine_getval(b, id, 0), -EACCES);
	EXPECT_INT(sem_stat(&b->c, id, false, false, &st), -EACCES);
	EXPECT_INT(sem_stat(&b->c, id, false, true, &st), 0);
	EXPECT_INT(sem_set_owner(&a->c, id, 200, 200, 0600, NOW), 0);
	EXPECT_INT(engine_rmid(b, id), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_no_fall_through),
		cmocka_unit_test(test_flags_fold_to_a_class),
		cmocka_unit_test(test_owner),
		TEST(test_calls_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
