/* SPDX-License-Identifier: Apache-2.0
 * The extractors of log_facts.c that read what a log says of its machine: chips, versions, variables,
 * figures, and what root sees.  Each is called where its text was found at a place of a piece; private
 * to log_*.c. */
#ifndef CAIRN_RULES_LOG_SEE_H
#define CAIRN_RULES_LOG_SEE_H

#include "rules/log_facts.h"

struct log_find log_see_gfx(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_product(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_marketing(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_board(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_torch(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_variable(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_device(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_current(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_node(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_second(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_oom(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_question(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_rocminfo(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_hsa_failed(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_hsa_fine(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_kfd_owner(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_groups(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_render_gid(struct log_facts *f, const char *s, size_t n, size_t at);
struct log_find log_see_group_add(struct log_facts *f, const char *s, size_t n, size_t at);
/* The log shows that the user, or the container, is not in the group that owns /dev/kfd. */
bool log_lacks_render(const struct log_facts *f);
struct log_find log_see_root_told(struct log_facts *f, const char *s, size_t n, size_t at);

#endif
