/* SPDX-License-Identifier: Apache-2.0
 * Sentences of cairn's own, on stderr. */
#ifndef CAIRN_CLI_MESSAGES_H
#define CAIRN_CLI_MESSAGES_H

#include "base/message_sink.h"

/* "cairn: …", wrapped; also while the terminal is the trainer's. */
void messages_say(const char *text);

extern const struct message_sink stderr_messages;

#endif
