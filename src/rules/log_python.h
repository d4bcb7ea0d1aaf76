/* SPDX-License-Identifier: Apache-2.0
 * The Python behind a log: its tracebacks name files of the environment that failed, and so where a
 * package is to be installed. */
#ifndef CAIRN_RULES_LOG_PYTHON_H
#define CAIRN_RULES_LOG_PYTHON_H

#include <stddef.h>

struct log_python {
    char exe[256]; /* "/home/me/venv/bin/python", "python3.11" for the system's; "": not told */
    int weight;    /* how much speaks for it */
};

/* "site-packages" or "dist-packages" begins at a place of a piece. */
void log_python_see(struct log_python *p, const char *s, size_t n, size_t at);

#endif
