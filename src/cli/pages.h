/* SPDX-License-Identifier: Apache-2.0
 * Texts embedded in the program: the evidence for its rules, and example configurations. */
#ifndef CAIRN_CLI_PAGES_H
#define CAIRN_CLI_PAGES_H

struct page {
    const char *name; /* "rules/override", "example/gpt-tiny" */
    const char *text;
};
/* Ends with a row whose name is NULL. */
extern const struct page pages[];

/* The text of folder/name, or NULL. */
const char *page_find(const char *folder, const char *name);
/* The names in a folder, separated by commas; the caller frees it. */
char *page_names(const char *folder);

#endif
