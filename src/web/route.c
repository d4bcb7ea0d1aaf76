/* SPDX-License-Identifier: Apache-2.0 */
#include "web/route.h"

#include "base/str.h"
#include "web/api.h"
#include <stdio.h>
#include <string.h>

/* clang-format off */
const struct route routes[] = {
    { "GET",    "/",                             api_index,           0,             0,          NULL },
    { "GET",    "/login",                        api_login,           ROUTE_OPEN,    0,          NULL },
    { "GET",    "/login.css",                    api_asset,           ROUTE_OPEN,    0,          NULL },
    { "GET",    "/{asset*}",                     api_asset,           0,             0,          NULL },

    { "GET",    "/api/v1/session",               api_session,         0,             0,          NULL },
    { "POST",   "/api/v1/logout",                api_logout,          0,             ROUTE_JSON, NULL },
    { "POST",   "/api/v1/link",                  api_link,            ROUTE_TOKEN,   ROUTE_JSON, NULL },
    { "GET",    "/api/v1/events",                api_events,          0,             0,          NULL },
    { "GET",    "/api/v1/openapi.json",          api_openapi,         0,             0,          NULL },

    { "GET",    "/api/v1/jobs",                  api_jobs_list,       0,             0,          NULL },
    { "POST",   "/api/v1/jobs",                  api_jobs_add,        ROUTE_CHANGES | ROUTE_QUEUE, ROUTE_JSON, NULL },
    { "GET",    "/api/v1/jobs/{uid}",            api_job_get,         0,             0,          NULL },
    { "PATCH",  "/api/v1/jobs/{uid}",            api_job_patch,       ROUTE_CHANGES | ROUTE_QUEUE, ROUTE_JSON, NULL },
    { "DELETE", "/api/v1/jobs/{uid}",            api_job_delete,      ROUTE_CHANGES | ROUTE_QUEUE, ROUTE_JSON, NULL },
    { "GET",    "/api/v1/jobs/{uid}/series",     api_job_series,      0,             0,          NULL },
    { "GET",    "/api/v1/jobs/{uid}/log",        api_job_log,         0,             0,          NULL },
    { "GET",    "/api/v1/jobs/{uid}/samples",    api_job_samples,     0,             0,          NULL },
    { "GET",    "/api/v1/jobs/{uid}/files",      api_job_files,       0,             0,          NULL },
    { "GET",    "/api/v1/jobs/{uid}/verdict",    api_job_verdict,     0,             0,          NULL },
    { "POST",   "/api/v1/jobs/{uid}/{action}",   api_job_act,         ROUTE_CHANGES | ROUTE_QUEUE, ROUTE_JSON, NULL },
    { "PUT",    "/api/v1/queue",                 api_queue_put,       ROUTE_CHANGES | ROUTE_QUEUE, ROUTE_JSON, NULL },
    { "GET",    "/api/v1/config",                api_config,          0,             0,          NULL },

    { "GET",    "/api/v1/settings",              api_settings_get,    0,             0,          NULL },
    { "PUT",    "/api/v1/settings",              api_settings_put,    ROUTE_CHANGES | ROUTE_QUEUE, ROUTE_JSON, NULL },

    { "GET",    "/api/v1/machine",               api_machine,         0,             0,          NULL },
    { "GET",    "/api/v1/machine/history",       api_machine_history, 0,             0,          NULL },
    { "GET",    "/api/v1/doctor",                api_doctor,          0,             0,          NULL },
    { "POST",   "/api/v1/check",                 api_check,           0,             ROUTE_JSON, NULL },
    { "POST",   "/api/v1/plan",                  api_plan,            ROUTE_CHANGES, ROUTE_JSON, NULL },
    { "POST",   "/api/v1/env",                   api_env,             0,             ROUTE_JSON, NULL },
    { "POST",   "/api/v1/diagnose",              api_diagnose,        0,             ROUTE_LOG,  NULL },
    { "POST",   "/api/v1/tensor/check",          api_tensor_check,    0,             ROUTE_JSON, NULL },

    { "GET",    "/api/v1/files/{folder}/{path*}", api_file_get,       0,             0,          NULL },
    { "PUT",    "/api/v1/files/{folder}/{path*}", api_file_put,       ROUTE_CHANGES | ROUTE_UPLOADS, 0, &upload_sink },
    { "DELETE", "/api/v1/files/{folder}/{path*}", api_file_delete,    ROUTE_CHANGES, ROUTE_JSON, NULL },
};
/* clang-format on */
const size_t n_routes = ARRAY_LEN(routes);

/* What follows, slashes included. */
static const char *rest_of(const struct target *t, size_t from, struct arena *a)
{
    const char *out = t->part[from];
    for (size_t i = from + 1; i < t->n_parts; i++)
        out = arena_printf(a, "%s/%s", out, t->part[i]);
    return out;
}

static bool matches(const char *pattern, const struct target *t, struct arena *a, const char *part[4])
{
    size_t i = 0, n_part = 0;
    for (const char *at = pattern + 1; *at; i++) {
        size_t n = strcspn(at, "/");
        if (i >= t->n_parts)
            return false;
        if (at[0] != '{') {
            if (strlen(t->part[i]) != n || memcmp(t->part[i], at, n))
                return false;
        } else if (at[n - 2] == '*') {
            part[n_part] = rest_of(t, i, a);
            return true;
        } else if (!*t->part[i]) {
            return false;
        } else {
            part[n_part++] = t->part[i];
        }
        at += n + (at[n] == '/');
    }
    return i == t->n_parts;
}

/* An unknown path of the API is no asset. */
static bool is_asset(const char *pattern)
{
    return !strcmp(pattern, "/{asset*}");
}

const struct route *route_find(const struct route *table, size_t n, const char *method,
                               const struct target *t, struct arena *a, const char *part[4], char allowed[64])
{
    const char *wanted = strcmp(method, "HEAD") ? method : "GET";
    bool is_api = t->n_parts && !strcmp(t->part[0], "api");
    const struct route *assets = NULL, *first = NULL;
    size_t used = 0;
    allowed[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        if (is_asset(table[i].path)) {
            assets = &table[i];
            continue;
        }
        /* A word of the table is no value of a later row's {name}. */
        if ((first && strcmp(first->path, table[i].path)) || !matches(table[i].path, t, a, part))
            continue;
        first = &table[i];
        if (!strcmp(table[i].method, wanted))
            return &table[i];
        used += (size_t)snprintf(allowed + used, 64 - used, "%s%s", used ? ", " : "", table[i].method);
    }
    if (allowed[0] || is_api || !assets || !t->n_parts)
        return NULL;
    if (!strcmp(wanted, "GET") && matches(assets->path, t, a, part))
        return assets;
    snprintf(allowed, 64, "GET");
    return NULL;
}
