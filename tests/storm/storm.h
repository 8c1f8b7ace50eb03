/* SPDX-License-Identifier: MIT */
/*
 * A storm of kills over a namespace, in rounds. Each round:
 *
 *   set up    a program makes the round's objects
 *   storm     nurseries keep their places filled with workers, which do everything at random by the
 *             C library's calls; the warden, who is no user of the namespace, kills one of them
 *             every few milliseconds, and now and then a whole nursery, or the reaper
 *   reckoning nobody is killed any more; whoever can end ends; who sleeps on must have a reason;
 *             then everything is counted and removed, and nothing may be left
 *
 * What the processes did they write down, before and after, in a ledger that outlives each of
 * them. What stands between "before" and "after" of a killed process may have happened or not; all
 * the rest must add up.
 *
 * One program in several roles: the warden starts the others with the library preloaded.
 */
#ifndef TESTS_STORM_H
#define TESTS_STORM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NURSERIES 2
#define PLACES    6 /* of workers, in each nursery; the first of each is left in peace */
#define SEATS     (NURSERIES * PLACES * 2) /* each worker may have one child beside it */

#define POOLS     2 /* sets of tokens, taken with SEM_UNDO */
#define POOL_SEMS 5 /* and one more that is a lock */
#define TOKENS    4
#define SUM_SEMS  4 /* a set whose sum stays: plain operations move units about */
#define SUM_UNITS 50
#define PLAIN     2 /* semaphores that plain operations count up and down */
#define PLAIN_AT  1000
#define ZERO_SEMS 3 /* 0, 1: locks by waiting for zero; 2: SETVAL and everything else */

#define QUEUES     2
#define TYPES      3
#define NUMBERS    512 /* messages of one type that one identity sends to one queue */
#define TEXT_MOST  8192
#define IDENTITIES 65536

#define KEYS     4 /* objects that come and go under well-known keys */
#define KEY_BASE 0x570000
#define OWN_MOST 3 /* objects of a place's last worker that may be left */

#define EXCEPT 0x100 /* beside a type: any but this */

enum doing { DOING_OTHER, DOING_TOKEN, DOING_SEND, DOING_RECEIVE, DOING_CHILD };

/* A worker's place. Written by who sits there; read by the warden. */
struct seat {
	int32_t pid;
	uint32_t identity;
	uint32_t doing; /* enum doing */
	uint32_t queue;
	int64_t type; /* DOING_RECEIVE: what it asks for (see EXCEPT); DOING_SEND: the size */
	int64_t since_ns;
	uint64_t rounds;
	int32_t own_set[OWN_MOST], own_queue[OWN_MOST], own_segment[OWN_MOST]; /* id + 1 */
};

/* What one identity did. An identity belongs to one process, or to one image of it. */
struct account {
	uint32_t receiving; /* queue + 1 while a message may be in its hands */
	uint32_t sends;     /* it has sent something */
	int64_t wanted;     /* by this type */
	int32_t plus_tried[PLAIN], plus_done[PLAIN], minus_tried[PLAIN], minus_done[PLAIN];
	uint32_t marks_tried, marks_done; /* additions to the counter in a segment */
	uint16_t tried[QUEUES][TYPES], sent[QUEUES][TYPES];
	uint64_t got[QUEUES][TYPES][NUMBERS / 64]; /* by whoever received it */
};

struct ledger {
	uint32_t seed;
	uint32_t stop;   /* the storm is over: end */
	uint32_t failed; /* somebody has said what is wrong */
	uint32_t identities;
	uint64_t received, sent, semops, forks, execs, exits, own, attaches; /* to print */
	int32_t pool[POOLS], sum, plain, zero, queue[QUEUES], segment;       /* ids; -1: none yet */
	int32_t anchor;                                                      /* of all rounds */
	uint64_t inside[POOLS + 2]; /* who has the lock; a dead one's mark may be left */
	struct seat seat[SEATS];
	struct account account[IDENTITIES];
};

extern struct ledger *ledger;
extern const char *self_path;

/* Says what is wrong, once for each caller, and ends the process. */
_Noreturn void storm_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

int64_t storm_now_ns(void);
void storm_sleep_ms(long ms);

static inline uint32_t storm_random(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33) % below;
}

/* The message as it travels. */
struct storm_message {
	long type; /* 1 .. TYPES */
	struct {
		uint32_t identity, number, queue, bytes;
	} head;
	unsigned char text[TEXT_MOST];
};

/* Ticks a received message off, and fails if it is none that was sent, or came before. `last`
 * notes the last number of each sender, to see their order; null: not looked at. */
void storm_tick_off(const struct storm_message *m, ssize_t length, uint32_t queue, uint16_t *last);

_Noreturn void storm_nursery(uint32_t index);
_Noreturn void storm_work(uint32_t seat, pid_t parent);
_Noreturn void storm_image(uint32_t seat, int tokens); /* what a worker executed */
_Noreturn void storm_set_up(void);
_Noreturn void storm_reckon(void);

#endif
