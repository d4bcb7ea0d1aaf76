/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/train_list.h"

#include "base/json.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "record/step_record.h"
#include "record/runs.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

static int64_t age_of(const struct run_row *r)
{
    int64_t age = (int64_t)time(NULL) - r->touched;
    return age > 0 ? age : 0;
}

/* "3 h" */
static const char *age_text(int64_t s, char buf[24])
{
    static const struct {
        int64_t seconds;
        const char *unit;
    } rows[] = { { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (s >= 2 * rows[i].seconds || rows[i].seconds == 1) {
            snprintf(buf, 24, "%" PRId64 " %s", s / rows[i].seconds, rows[i].unit);
            break;
        }
    return buf;
}

static enum print_color color_of(enum run_state s)
{
    return s == RUN_CRASHED    ? COLOR_RED
           : s == RUN_RUNNING  ? COLOR_CYAN
           : s == RUN_FINISHED ? COLOR_GREEN
                               : COLOR_YELLOW;
}

/* As narrow as what is in them allows: a terminal has 80 columns, and the folder comes last. */
struct widths {
    int name, model, steps;
};

static void widen(int *width, int most, const char *text)
{
    int w = print_columns(text);
    *width = w < *width ? *width : w < most ? w : most;
}

static const char *steps_text(const struct run_row *r, char buf[48])
{
    if (r->info.steps)
        snprintf(buf, 48, "%" PRIu64 "/%" PRIu64, r->done, r->info.steps);
    else
        snprintf(buf, 48, "%" PRIu64, r->done);
    return buf;
}

static const char *model_text(const struct run_row *r)
{
    return r->info.model ? r->info.model : "-";
}

static struct widths widths_of(const struct run_row *rows, size_t n)
{
    struct widths w = { 4, 5, 5 };
    char steps[48];
    for (size_t i = 0; i < n; i++) {
        widen(&w.name, 32, rows[i].info.name);
        widen(&w.model, 18, model_text(&rows[i]));
        widen(&w.steps, 15, steps_text(&rows[i], steps));
    }
    return w;
}

static void print_row(const struct run_row *r, struct widths w)
{
    char steps[48], loss[24] = "-", age[24];
    if (r->has_loss)
        snprintf(loss, sizeof(loss), "%.4g", r->loss);
    print_cell(stdout, r->info.name, w.name);
    putchar(' ');
    print_cell(stdout, model_text(r), w.model);
    printf(" %*s %8s %s%-9s%s %7s  ", w.steps, steps_text(r, steps), loss,
           print_color(color_of(r->info.state)), run_state_name(r->info.state), print_color(COLOR_PLAIN),
           age_text(age_of(r), age));
    print_padded(stdout, r->dir, 0);
    putchar('\n');
}

static void print_table(const struct run_row *rows, size_t n)
{
    struct widths w = widths_of(rows, n);
    if (!n) {
        puts("there are no training runs");
        return;
    }
    printf("%s%-*s %-*s %*s %8s %-9s %7s  %s%s\n", print_color(COLOR_BOLD), w.name, "NAME", w.model, "MODEL",
           w.steps, "STEPS", "LOSS", "STATE", "AGE", "FOLDER", print_color(COLOR_PLAIN));
    for (size_t i = 0; i < n; i++)
        print_row(&rows[i], w);
}

static void add_count(struct json *o, const char *key, uint64_t v)
{
    if (v)
        json_add_int(o, key, (int64_t)v);
    else
        json_add_null(o, key);
}

static void print_json(const struct run_row *rows, size_t n)
{
    CLEANUP(json_cleanup) struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    struct json *list = json_add_array(top, "runs");
    for (size_t i = 0; i < n; i++) {
        const struct run_row *r = &rows[i];
        struct json *o = json_add_object(list, NULL);
        json_add_text(o, "name", r->info.name);
        json_add_text(o, "dir", r->dir);
        json_add_text(o, "state", run_state_name(r->info.state));
        json_add_text(o, "model", r->info.model);
        add_count(o, "parameters", r->info.parameters);
        json_add_text(o, "device", r->info.device);
        json_add_int(o, "steps_done", (int64_t)r->done);
        add_count(o, "steps", r->info.steps);
        if (r->has_loss && isfinite(r->loss))
            json_add_real(o, "loss", r->loss);
        else
            json_add_null(o, "loss");
        json_add_int(o, "age_s", age_of(r));
    }
    json_print(top, stdout);
}

int train_list(const char *dir, bool json)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct run_row *rows;
    size_t n;
    if (runs_list(dir, &a, &rows, &n, &err))
        return print_error(&err);
    (json ? print_json : print_table)(rows, n);
    return EXIT_FINE;
}
