/* SPDX-License-Identifier: Apache-2.0
 * Parses numbers and versions.  The whole text must be the number: a typo is never read as 0, and an
 * out-of-range number never wraps. */
#ifndef CAIRN_BASE_PARSE_H
#define CAIRN_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool cairn_parse_u64(const char *text, uint64_t *out); /* decimal digits only */
bool cairn_parse_i64(const char *text, int64_t *out);  /* may have a minus */
bool cairn_parse_hex(const char *text, uint64_t *out); /* with or without 0x */
/* Reads the number that a text begins with, as JSON writes numbers, and returns the text behind it; NULL if there is
 * none.  The value is that of strtod, in a fifth of its time: logs have millions of numbers. */
const char *cairn_scan_real(const char *text, double *out);
/* "name number", one space, name shorter than size.  A line feed at the end is fine. */
bool cairn_parse_pair(const char *line, char *name, size_t size, uint64_t *out);

/* A dotted version.  n is the number of parts; 0 means unknown, and compares below everything. */
struct version {
    int n;
    int part[3];
    bool pre; /* a pre-release (rc, a, b, dev): comes before the plain version */
};

/* Reads the leading "6.17.0" of "6.17.0-12-generic", "2.9.1+rocm6.4", "v7.2"; false if there is none. */
bool version_parse(const char *text, struct version *out);
int version_compare(struct version a, struct version b);
/* False if v is unknown. */
bool version_at_least(struct version v, int major, int minor, int patch);
/* Whether v is known and older. */
bool version_below(struct version v, int major, int minor, int patch);

#endif
