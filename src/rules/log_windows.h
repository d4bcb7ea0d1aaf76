/* SPDX-License-Identifier: Apache-2.0
 * What only Windows prints: NTSTATUS codes, and paths with a drive. */
#ifndef CAIRN_RULES_LOG_WINDOWS_H
#define CAIRN_RULES_LOG_WINDOWS_H

#include "rules/issue_rules.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An exit status that a process of Windows ends with when the system stops it: 0xC0000005. */
struct windows_status {
    uint32_t code;
    enum issue issue; /* what it tells of, with this score; 0: of nothing */
    int score;
};

/* NULL for any other status. */
const struct windows_status *log_windows_status(int64_t code);
/* Does such a code stand at a place of a piece, as 0xC0000005, 3221225477 or -1073741819? */
bool log_windows_has_status(const char *s, size_t n, size_t at);
/* Is the ":\" at a place of a piece that of a path or prompt, C:\toolkit\venv or C:\toolkit>? */
bool log_windows_has_path(const char *s, size_t n, size_t at);

#endif
