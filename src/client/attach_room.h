/* SPDX-License-Identifier: MIT */
/* Room for segments to come. Async-signal-safe; leaves errno alone. */
#ifndef USYSV_CLIENT_ATTACH_ROOM_H
#define USYSV_CLIENT_ATTACH_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* Could the file system hold `bytes` more, beside all that the segments may still grow to? */
bool attach_room_is_enough(const unsigned char *base, uint64_t bytes);

/* Are there so many bytes of huge pages of this size, in a file system that takes a segment? */
bool attach_room_has_huge(uint32_t shift, uint64_t bytes, bool reserve);

#endif
