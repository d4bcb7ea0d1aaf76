/* SPDX-License-Identifier: Apache-2.0
 * cairn's own messages, on stderr. */
#ifndef CAIRN_CLI_MESSAGES_H
#define CAIRN_CLI_MESSAGES_H

#include "base/message_sink.h"

/* "cairn: …", wrapped; also works while the terminal is raw. */
void messages_say(const char *text);

extern const struct message_sink stderr_messages;

#endif
