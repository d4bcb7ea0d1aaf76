/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "host/memory.h"
#include "run/probe.h"
#include <string.h>

struct judge {
    const struct probe *probe;
    const struct json *result;
    const struct doctor *doctor;
    const struct facts *facts;
    const struct gpu_facts *gpu;
    const struct torch_facts *torch;
    int timeout_s;
    struct arena *arena;
    struct probe_report report;
};

static struct probe_line *add(struct judge *j, const char *id, const char *predicted,
                              enum check_status status, const char *fact)
{
    struct probe_line *line = ARENA_PUSH(j->arena, j->report.lines, j->report.n);
    *line =
        (struct probe_line){ .id = id, .predicted = predicted, .found = { .status = status, .fact = fact } };
    return line;
}

static const char *result_text(const struct judge *j, const char *key)
{
    return json_text(json_get(j->result, key));
}

static const char *python_of(const struct judge *j)
{
    return j->torch && j->torch->python ? j->torch->python : "python3";
}

/* The error message of a step, or NULL. */
static const char *error_at(const struct judge *j, const char *stage)
{
    const struct json *errors = json_get(j->result, "errors");
    for (size_t i = 0; i < json_length(errors); i++)
        if (str_eq(json_text(json_get(json_at(errors, i), "stage")), stage))
            return json_text(json_get(json_at(errors, i), "error"));
    return NULL;
}

/* The child ended without a result: at which stage, and its last line. */
static const char *describe_end(const struct judge *j)
{
    const struct probe *p = j->probe;
    const char *stage = p->stage ? p->stage : "starting Python";
    switch (p->end) {
    case PROBE_HUNG:
        return arena_printf(j->arena, "no response after %d s at: %s%s", j->timeout_s, stage,
                            p->stuck ? "; the process is stuck in the driver and ends when the call returns"
                                     : "");
    case PROBE_CRASHED:
        return arena_printf(j->arena, "Python crashed with signal %d (%s) at: %s", p->code,
                            strsignal(p->code), stage);
    case PROBE_NO_PYTHON:
        return arena_printf(j->arena, "%s could not be started: %s", python_of(j), strerror(p->code));
    default:
        return arena_printf(j->arena, "Python failed with exit status %d at: %s", p->code, stage);
    }
}

static void judge_end(struct judge *j)
{
    const struct probe *p = j->probe;
    if (p->end == PROBE_ANSWERED) {
        add(j, "probe-python", NULL, CHECK_OK,
            arena_printf(j->arena, "Python %s answered in %.1f s", result_text(j, "python"), p->seconds));
        return;
    }
    struct probe_line *line = add(j, "probe-python", NULL, CHECK_FAIL, describe_end(j));
    line->found.why = p->tail;
    if (p->end == PROBE_NO_PYTHON)
        line->found.remedy = "cairn doctor --probe --torch DIR    # with the environment that has PyTorch";
    else
        line->found.remedy =
            arena_printf(j->arena,
                         "HSAKMT_DEBUG_LEVEL=4 AMD_LOG_LEVEL=3 %s -c 'import torch; print(torch.ones(2, "
                         "device=\"cuda\"))'",
                         python_of(j));
}

static void judge_torch(struct judge *j)
{
    const char *version = result_text(j, "torch"), *error = error_at(j, "import torch");
    const char *predicted = j->torch ? j->torch->version.s : "no PyTorch";
    struct probe_line *line =
        add(j, "probe-torch", predicted, version ? CHECK_OK : CHECK_FAIL,
            version ? arena_printf(j->arena, "torch %s", version) : "import torch failed");
    line->found.why = error;
    line->differs = version ? !str_eq(version, predicted) : j->torch != NULL;
    if (!version && j->torch)
        line->found.remedy = arena_printf(j->arena, "%s -m pip check", python_of(j));
}

static const char *predict_device(const struct judge *j)
{
    if (j->doctor->verdict == VERDICT_UNKNOWN)
        return NULL;
    return j->doctor->verdict == VERDICT_BROKEN ? "none"
           : j->gpu && j->gpu->name.s           ? j->gpu->name.s
                                                : "available";
}

static void judge_device(struct judge *j)
{
    bool available = json_bool(json_get(j->result, "available"), false);
    const char *predicted = predict_device(j), *hip = result_text(j, "hip");
    const char *error = error_at(j, "looking for a device");
    struct probe_line *line;
    if (available)
        line = add(j, "probe-device", predicted, CHECK_OK,
                   arena_printf(j->arena, "the device is %s, through %s", result_text(j, "device"),
                                hip ? "HIP" : "CUDA"));
    else
        line = add(j, "probe-device", predicted, CHECK_FAIL, "torch.cuda.is_available() is False");
    line->found.why = error ? error : available ? NULL : "PyTorch sees no GPU";
    line->differs = predicted && available == str_eq(predicted, "none");
}

static void judge_target(struct judge *j)
{
    const char *target = result_text(j, "target"), *predicted = j->doctor->target;
    if (!target)
        return;
    struct probe_line *line =
        add(j, "probe-target", predicted, CHECK_OK, arena_printf(j->arena, "it runs as %s", target));
    line->differs = predicted && !str_eq(target, predicted);
    if (!line->differs)
        return;
    line->found.status = CHECK_WARN;
    line->found.why = "the runtime uses another target, or PyTorch uses another GPU";
}

/* Does torch report exactly the targets that its files contain? */
static bool same_targets(const struct json *archs, const struct targets *t)
{
    if (json_length(archs) != t->n)
        return false;
    for (size_t i = 0; i < t->n; i++) {
        const char *name = json_text(json_at(archs, i));
        if (!name || !targets_has(t, name))
            return false;
    }
    return true;
}

static void judge_archs(struct judge *j)
{
    const struct json *archs = json_get(j->result, "archs");
    CLEANUP(str_release) struct str found = { 0 }, predicted = { 0 };
    if (!json_length(archs))
        return;
    for (size_t i = 0; i < json_length(archs); i++)
        str_addf(&found, "%s%s", i ? " " : "", json_text(json_at(archs, i)));
    bool known = j->torch && j->torch->compiled.from;
    for (size_t i = 0; known && i < j->torch->compiled.n; i++)
        str_addf(&predicted, "%s%s", i ? " " : "", j->torch->compiled.name[i]);
    struct probe_line *line = add(j, "probe-archs", known ? arena_strdup(j->arena, predicted.s) : NULL,
                                  CHECK_OK, arena_printf(j->arena, "PyTorch is compiled for %s", found.s));
    line->differs = known && !same_targets(archs, &j->torch->compiled);
}

static void judge_memory(struct judge *j)
{
    int64_t total = json_int(json_get(j->result, "total_bytes"), -1);
    struct num predicted = { 0 };
    if (j->gpu)
        predicted = j->gpu->kfd_bank_bytes.from ? j->gpu->kfd_bank_bytes
                                                : memory_total(&j->facts->host, j->arena, j->gpu);
    if (total <= 0)
        return;
    double gib = 1024.0 * 1024 * 1024;
    struct probe_line *line = add(j, "probe-memory", NULL, CHECK_OK,
                                  arena_printf(j->arena, "it has %.1f GiB in total", (double)total / gib));
    if (!predicted.from)
        return;
    line->predicted = arena_printf(j->arena, "%.1f GiB", (double)predicted.v / gib);
    line->differs = (double)total < 0.95 * (double)predicted.v || (double)total > 1.05 * (double)predicted.v;
    if (!line->differs)
        return;
    line->found.status = CHECK_WARN;
    line->found.why = "PyTorch goes by its own figure";
}

/* One line per computation on the device that was compared. */
static void judge_computed(struct judge *j, const char *key, const char *id, const char *format)
{
    const struct json *rows = json_get(j->result, key);
    for (size_t i = 0; i < json_length(rows); i++) {
        const struct json *row = json_at(rows, i);
        int64_t tested = json_int(json_get(row, "tested"), 0), wrong = json_int(json_get(row, "wrong"), -1);
        int64_t zeros = json_int(json_get(row, "zeros"), 0);
        const char *name = json_text(json_get(row, "name")), *first = json_text(json_get(row, "first"));
        bool fine = wrong == 0 && tested > 0;
        struct probe_line *line = add(j, id, "exact", fine ? CHECK_OK : CHECK_FAIL,
                                      arena_printf(j->arena, "%s%s: %lld of %lld %s", format,
                                                   name ? name : "?", (long long)(fine ? tested : wrong),
                                                   (long long)tested, fine ? "right" : "wrong"));
        line->differs = !fine;
        if (!fine)
            line->found.why =
                arena_printf(j->arena, "%s%s%s", zeros ? "the result has zeros; " : "", first ? first : "",
                             first ? "" : "the device computes other values than the CPU");
    }
}

/* Steps that raised an error while computing have no row of their own. */
static void judge_errors(struct judge *j)
{
    static const char *const reported[] = { "import torch", "looking for a device", "import accelerate" };
    const struct json *errors = json_get(j->result, "errors");
    for (size_t i = 0; i < json_length(errors); i++) {
        const char *stage = json_text(json_get(json_at(errors, i), "stage"));
        bool known = false;
        for (size_t k = 0; k < ARRAY_LEN(reported); k++)
            known = known || str_eq(stage, reported[k]);
        if (known)
            continue;
        struct probe_line *line = add(j, "probe-compute", "exact", CHECK_FAIL,
                                      arena_printf(j->arena, "%s failed", stage ? stage : "a step"));
        line->found.why = json_text(json_get(json_at(errors, i), "error"));
        line->differs = true;
    }
}

static void judge_accelerate(struct judge *j)
{
    const char *version = result_text(j, "accelerate"), *error = error_at(j, "import accelerate");
    const char *predicted = !j->torch                        ? NULL
                            : j->torch->accelerate.version.s ? j->torch->accelerate.version.s
                                                             : "none";
    if (!result_text(j, "torch"))
        return;
    struct probe_line *line =
        add(j, "probe-accelerate", predicted, error ? CHECK_WARN : CHECK_OK,
            version ? arena_printf(j->arena, "accelerate %s on %s", version,
                                   result_text(j, "accelerate_device") ? result_text(j, "accelerate_device")
                                                                       : "nothing")
                    : "accelerate was not imported");
    line->found.why = error;
    line->differs = predicted && str_eq(predicted, "none") == (version != NULL);
}

static void conclude(struct judge *j)
{
    struct probe_report *r = &j->report;
    bool fail = false, warn = false;
    for (size_t i = 0; i < r->n; i++) {
        fail = fail || r->lines[i].found.status == CHECK_FAIL;
        warn = warn || r->lines[i].found.status == CHECK_WARN;
    }
    r->reality = fail ? VERDICT_BROKEN : warn ? VERDICT_DEGRADED : VERDICT_WORKS;
    if (j->probe->end == PROBE_NO_PYTHON)
        r->reality = VERDICT_UNKNOWN;
    enum verdict predicted = r->prediction = j->doctor->verdict;
    bool open = predicted == VERDICT_UNKNOWN || r->reality == VERDICT_UNKNOWN;
    r->agrees = open || (predicted == VERDICT_BROKEN) == (r->reality == VERDICT_BROKEN);
    const char *device = result_text(j, "device");
    r->summary = arena_printf(j->arena, "Predicted: %s. Found: %s%s%s.%s", verdict_name(predicted),
                              verdict_name(r->reality), device ? " on " : "", device ? device : "",
                              r->agrees ? "" : " They differ: the test counts.");
}

void probe_judge(const struct probe *p, const struct facts *f, const struct doctor *d, int timeout_s,
                 struct arena *a, struct probe_report *out)
{
    struct judge j = {
        .probe = p, .result = p->result, .doctor = d, .facts = f, .timeout_s = timeout_s, .arena = a
    };
    j.gpu = d->gpu;
    j.torch = facts_torch(f);
    judge_end(&j);
    if (p->result) {
        judge_torch(&j);
        if (result_text(&j, "torch"))
            judge_device(&j);
        judge_target(&j);
        judge_memory(&j);
        judge_archs(&j);
        judge_computed(&j, "conversions", "probe-convert", "");
        judge_computed(&j, "matmul", "probe-matmul", "matmul in ");
        judge_errors(&j);
        judge_accelerate(&j);
    }
    conclude(&j);
    *out = j.report;
}

/* The doctor's verdict for the planned environment, which the child gets. */
static void predict(int gpu, const struct facts *f, const char *const *env, struct arena *a,
                    struct doctor *out)
{
    const struct plan_options po = { .gpu = gpu };
    struct facts planned = *f;
    struct plan plan = { 0 };
    struct cairn_error ignored = { 0 };
    planned.env = env;
    if (!plan_build(&planned, &po, a, &plan, &ignored))
        doctor_run(&planned, &plan, a, out);
}

int probe_examine(const struct probe_request *r, struct arena *a, struct probe *probe,
                  struct probe_report *out, struct cairn_error *err)
{
    const struct torch_facts *t = facts_torch(r->facts);
    const struct probe_options po = {
        .python = t && t->python ? t->python : "python3",
        .site = t ? t->site : NULL,
        .env = plan_environment(r->facts, r->plan, a),
        .timeout_s = r->timeout_s,
    };
    if (probe_run(&po, a, probe, err))
        return -1;
    if (probe->end == PROBE_INTERRUPTED)
        return 0;
    struct doctor predicted = *r->doctor;
    predict(r->gpu, r->facts, po.env, a, &predicted);
    probe_judge(probe, r->facts, &predicted, r->timeout_s, a, out);
    return 0;
}
