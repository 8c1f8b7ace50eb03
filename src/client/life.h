/* SPDX-License-Identifier: MIT */
/*
 * How others learn of a thread's death: its life word, a word of the region that the kernel marks
 * when the thread dies, however it dies. Cards LIFE_P1 and WATCH_P1 are in life.c.
 */
#ifndef USYSV_CLIENT_LIFE_H
#define USYSV_CLIENT_LIFE_H

#include <stdbool.h>
#include <stdint.h>

/* Private memory of a thread that goes with its life word. */
#define LIFE_PRIVATE_BYTES 4096u
#define LIFE_NODE_BYTES    64u

/*
 * Puts the life word of thread slot thread_ix under the kernel's eyes for the calling thread.
 * *ret_private: LIFE_PRIVATE_BYTES of zeroed memory that fork wipes; the first LIFE_NODE_BYTES are
 * in use. *ret_marked: the kernel will mark the word, which is then to hold the thread's id. 0 or
 * -errno. Async-signal-safe.
 */
int life_begin(unsigned char *base, uint32_t thread_ix, void **ret_private, bool *ret_marked);

/* Unmaps what life_begin() made for a vfork child that has ended, in the memory it borrowed. */
void life_unmap(void *private_memory);

#endif
