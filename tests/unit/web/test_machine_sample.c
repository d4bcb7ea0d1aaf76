/* SPDX-License-Identifier: Apache-2.0 */
#include "web/machine_sample.h"

#include "base/cleanup.h"
#include "check.h"
#include "tree.h"
#include <math.h>

static int read_facts(struct facts *f, const char *root, bool still)
{
    struct cairn_error err = { 0 };
    const char *const env[] = { NULL };
    struct facts_options o = { .root = root, .env = env, .parts = FACTS_HARDWARE, .still = still };
    return facts_read(f, &o, &err);
}

static double figure(const struct machine_sample *s, const char *key)
{
    for (size_t i = 0; i < n_machine_figures; i++)
        if (!strcmp(machine_figures[i].key, key))
            return s->value[i];
    CHECK_FAIL_("no figure %s", key);
    return 0;
}

static void figures_of_a_card(void)
{
    CLEANUP(facts_release) struct facts f;
    CLEANUP(machine_sample_release) struct machine_sample s = { 0 };
    struct machine_cpu cpu = { 0 };
    REQUIRE(!read_facts(&f, check_data("sysfs/gfx1030-rx6900xt-desktop-drm-only"), false));
    machine_sample_take(&s, &f, &cpu, 1234);
    REQUIRE(s.n_gpus == 1);
    CHECK(figure(&s, "busy_percent") == 3);
    CHECK(figure(&s, "power_w") == 36);
    CHECK(figure(&s, "temperature_c") == 56);
    CHECK(figure(&s, "vram_used_bytes") == 668274688);
    CLEANUP(json_cleanup) struct json *v = machine_sample_report(&s, &f);
    CHECK_INT(json_int(json_get(v, "time_ms"), 0), 1234);
    const struct json *gpu = json_at(json_get(v, "gpus"), 0);
    CHECK(json_number(json_get(gpu, "power_w"), 0) == 36);
    CHECK(json_is_null(json_get(json_get(v, "host"), "cpu_percent")));
}

static void still_facts_leave_sensors_out(void)
{
    CLEANUP(facts_release) struct facts f;
    CLEANUP(machine_sample_release) struct machine_sample s = { 0 };
    struct machine_cpu cpu = { 0 };
    REQUIRE(!read_facts(&f, check_data("sysfs/gfx1030-rx6900xt-desktop-drm-only"), true));
    machine_sample_take(&s, &f, &cpu, 0);
    CHECK(isnan(figure(&s, "busy_percent")) && isnan(figure(&s, "power_w")) &&
          isnan(figure(&s, "clock_mhz")));
    CHECK(figure(&s, "vram_used_bytes") == 668274688);
}

static double cpu_of(struct tree *t, struct machine_cpu *cpu, const char *stat)
{
    struct facts f;
    struct machine_sample s;
    tree_put(t, "proc/stat", stat);
    if (read_facts(&f, t->dir, true))
        return -1;
    machine_sample_take(&s, &f, cpu, 0);
    double v = s.host[MACHINE_CPU];
    machine_sample_release(&s);
    facts_release(&f);
    return v;
}

static void the_cpu_is_busy_since_the_last_look(void)
{
    struct tree t;
    struct machine_cpu cpu = { 0 };
    tree_make(&t);
    CHECK(isnan(cpu_of(&t, &cpu, "cpu  100 0 100 800 0 0 0 0\n")));
    CHECK(cpu_of(&t, &cpu, "cpu  125 0 100 875 0 0 0 0\n") == 25);
    CHECK(isnan(cpu_of(&t, &cpu, "cpu  125 0 100 875 0 0 0 0\n"))); /* no time has passed */
    CHECK(cpu_of(&t, &cpu, "cpu  125 0 100 875 100 0 0 0\n") == 0);
    CHECK(isnan(cpu_of(&t, &cpu, "cpu  x\n")));
    CHECK(isnan(cpu_of(&t, &cpu, "")));
    CHECK(isnan(cpu_of(&t, &cpu, "cpu  1 0 1 8 0 0 0 0\n"))); /* another machine */
    tree_remove(&t);
}

static void add(struct machine_ring *r, int64_t time_ms, size_t n_gpus)
{
    struct machine_sample s = { .time_ms = time_ms, .n_gpus = n_gpus, .host = { NAN, 2, 1.5 } };
    s.asleep = calloc(n_gpus + 1, sizeof(bool));
    s.value = calloc(n_gpus * n_machine_figures + 1, sizeof(double));
    if (n_gpus)
        s.value[0] = (double)time_ms / 1000;
    machine_ring_add(r, &s);
}

static void ten_minutes_are_kept(void)
{
    static struct machine_ring r;
    for (int i = 0; i < 2000; i++)
        add(&r, i * 1000, 1);
    CLEANUP(json_cleanup) struct json *v = machine_ring_report(&r, 0);
    const struct json *times = json_get(v, "time_ms");
    CHECK_INT(json_length(times), MACHINE_RING);
    CHECK_INT(json_int(json_at(times, MACHINE_RING - 1), 0), 1999000);
    const struct json *busy = json_get(json_at(json_get(v, "gpus"), 0), machine_figures[0].key);
    CHECK_INT(json_int(json_at(busy, 0), 0), 1400);
    CHECK(json_is_null(json_at(json_get(json_get(v, "host"), "cpu_percent"), 5)));
    CLEANUP(json_cleanup) struct json *late = machine_ring_report(&r, 1990000);
    CHECK_INT(json_length(json_get(late, "time_ms")), 10);
    add(&r, 1999000 + 3600000, 1); /* the machine slept */
    CLEANUP(json_cleanup) struct json *after = machine_ring_report(&r, 0);
    CHECK_INT(json_length(json_get(after, "time_ms")), 1);
    machine_ring_release(&r);
}

static void a_new_gpu_starts_anew(void)
{
    static struct machine_ring r;
    add(&r, 1000, 1);
    add(&r, 2000, 1);
    add(&r, 3000, 2);
    CLEANUP(json_cleanup) struct json *v = machine_ring_report(&r, 0);
    CHECK_INT(json_length(json_get(v, "time_ms")), 1);
    CHECK_INT(json_length(json_get(v, "gpus")), 2);
    machine_ring_release(&r);
    CLEANUP(json_cleanup) struct json *none = machine_ring_report(&r, 0);
    CHECK_INT(json_length(json_get(none, "gpus")), 0);
}

int main(void)
{
    RUN(figures_of_a_card);
    RUN(still_facts_leave_sensors_out);
    RUN(the_cpu_is_busy_since_the_last_look);
    RUN(ten_minutes_are_kept);
    RUN(a_new_gpu_starts_anew);
    return check_done();
}
