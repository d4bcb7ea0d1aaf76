/* SPDX-License-Identifier: Apache-2.0
 * Texts that travel inside the program: the evidence behind its rules, and jobs to start from.  So they are there
 * wherever the program is. */
#ifndef CAIRN_CLI_PAGES_H
#define CAIRN_CLI_PAGES_H

struct page {
    const char *name; /* "rules/override", "example/gpt-tiny" */
    const char *text;
};
/* Ends with a row whose name is NULL. */
extern const struct page pages[];

/* The text of folder/name; NULL: there is none. */
const char *page_find(const char *folder, const char *name);
/* The names in a folder, with commas between; memory is the caller's. */
char *page_names(const char *folder);

#endif
