/* SPDX-License-Identifier: MIT */
/*
 * The message family: what its two files share.
 */
#ifndef DIFFERENTIAL_FAMILY_MSG_H
#define DIFFERENTIAL_FAMILY_MSG_H

#include "step.h"

/* Arguments of the operations are described in the table of family_msg.c. */
enum {
	MSG_OP_GET,
	MSG_OP_SEND,
	MSG_OP_RECEIVE,
	MSG_OP_CTL,
	MSG_OP_COUNT,
};

bool msg_generate(struct world *world, struct step *step);
void msg_choose_style(struct world *world);

#endif
