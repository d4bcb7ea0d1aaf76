/* SPDX-License-Identifier: Apache-2.0
 * Whether a user or a container is in the group that owns /dev/kfd. */
#include "rules/log_see.h"

#include "base/match.h"
#include <ctype.h>
#include <string.h>

static const struct log_find nothing;

/* The digits at a place; 0: none, or more than a gid has. */
static uint32_t gid_at(const char *s, size_t n, size_t at)
{
    uint64_t gid = 0;
    for (; at < n && isdigit((unsigned char)s[at]) && gid < UINT32_MAX; at++)
        gid = gid * 10 + (uint64_t)(s[at] - '0');
    return gid < UINT32_MAX ? (uint32_t)gid : 0;
}

/* "crw-rw---- 1 root render 235, 0 /dev/kfd" */
struct log_find log_see_kfd_owner(struct log_facts *f, const char *s, size_t n, size_t at)
{
    f->kfd_of_render |= match_any(s, at, "crw-rw----") && match_any(s, at, " render ");
    (void)n;
    return nothing;
}

/* "uid=1000(user) gid=1000(user) groups=1000(user),27(sudo)" */
struct log_find log_see_groups(struct log_facts *f, const char *s, size_t n, size_t at)
{
    if (!match_any(s, at, "uid="))
        return nothing;
    f->groups_told = true;
    f->in_render |= match_any(s + at, n - at, "(render)|0(root)");
    return nothing;
}

/* "render:x:992:", as getent prints it. */
struct log_find log_see_render_gid(struct log_facts *f, const char *s, size_t n, size_t at)
{
    f->render_gid = gid_at(s, n, at + strlen("render:x:"));
    return nothing;
}

/* "--group-add 992", "--group-add=render". */
struct log_find log_see_group_add(struct log_facts *f, const char *s, size_t n, size_t at)
{
    at += strlen("--group-add");
    while (at < n && strchr(" =\"'", s[at]))
        at++;
    uint32_t gid = gid_at(s, n, at);
    f->render_given |= !gid && n - at >= strlen("render") && !memcmp(s + at, "render", strlen("render"));
    f->gid_given |= gid > 0;
    for (size_t i = 0; gid && i < LOG_MOST_GIDS; i++)
        if (!f->gids[i] || f->gids[i] == gid) {
            f->gids[i] = gid;
            break;
        }
    return nothing;
}

bool log_lacks_render(const struct log_facts *f)
{
    bool given = f->render_given;
    for (size_t i = 0; i < LOG_MOST_GIDS; i++)
        given |= f->render_gid && f->gids[i] == f->render_gid;
    if (f->render_gid && f->gid_given)
        return !given;
    return f->kfd_of_render && f->groups_told && !f->in_render;
}
