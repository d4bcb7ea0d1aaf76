/* SPDX-License-Identifier: Apache-2.0
 * The records of tests/data/diagnose: a log, and the class that a person gave it. */
#ifndef CAIRN_TESTS_RECORDS_H
#define CAIRN_TESTS_RECORDS_H

#include "base/cleanup.h"
#include "base/json.h"
#include <stdio.h>
#include <stdlib.h>

/* Calls see for each record of the file. False if it cannot be read as records. */
static inline bool records_each(const char *path, void (*see)(const struct json *record, void *to), void *to)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    bool fine = f != NULL;
    while (fine && (n = getline(&line, &cap, f)) > 0) {
        CLEANUP(json_cleanup) struct json *record = NULL;
        struct cairn_error err = { 0 };
        fine = !json_parse(line, (size_t)n, &record, &err) && json_text(json_get(record, "log"));
        if (fine)
            see(record, to);
    }
    free(line);
    if (f)
        fclose(f);
    return fine;
}

#endif
