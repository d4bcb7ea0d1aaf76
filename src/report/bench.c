/* SPDX-License-Identifier: Apache-2.0 */
#include "report/bench.h"

#include "config.h"

static void add_ops(struct json *row, const struct bench_result *r)
{
    struct json *ops = json_add_array(row, "ops");
    for (size_t i = 0; i < r->n_ops; i++) {
        struct json *op = json_add_object(ops, NULL);
        json_add_text(op, "op", r->ops[i].op);
        json_add_text(op, "part", r->ops[i].part);
        json_add_real(op, "calls", r->ops[i].calls);
        json_add_real(op, "time_ms", r->ops[i].ms);
        json_add_real(op, "flop", r->ops[i].flops);
        json_add_real(op, "bytes", r->ops[i].bytes);
    }
}

struct json *report_bench(const struct gpu_info *g, const struct bench_result *r, size_t n)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    json_add_text(top, "version", CAIRN_VERSION);
    json_add_text(top, "device", g->name);
    json_add_text(top, "title", g->title);
    json_add_text(top, "arch", g->arch);
    json_add_int(top, "driver", g->driver);
    json_add_text(top, "library", g->library[0] ? g->library : NULL);
    json_add_text(top, "library_source", g->source[0] ? g->source : NULL);
    json_add_text(top, "not_used", g->passed_over[0] ? g->passed_over : NULL);
    struct json *results = json_add_array(top, "results");
    for (size_t i = 0; i < n; i++) {
        struct json *row = json_add_object(results, NULL);
        json_add_text(row, "bench", r[i].group);
        json_add_text(row, "name", r[i].name);
        json_add_text(row, "format", r[i].format);
        json_add_text(row, "shape", r[i].shape);
        struct json *sizes = json_add_array(row, "sizes");
        for (int k = 0; k < BENCH_SIZES && r[i].sizes[k]; k++)
            json_add_int(sizes, NULL, r[i].sizes[k]);
        json_add_text(row, "by", r[i].way);
        json_add_real(row, "time_ms", r[i].ms);
        json_add_text(row, "unit", r[i].is_flops ? "TFLOP/s" : "GB/s");
        json_add_real(row, "rate", r[i].rate);
        json_add_real(row, "ceiling", r[i].ceiling);
        json_add_real(row, "ratio", r[i].rate / r[i].ceiling);
        if (r[i].relative > 0)
            json_add_real(row, "relative", r[i].relative);
        if (r[i].ops)
            add_ops(row, &r[i]);
    }
    return top;
}
