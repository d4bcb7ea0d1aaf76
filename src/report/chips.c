/* SPDX-License-Identifier: Apache-2.0 */
#include "report/chips.h"

#include "chip/gfx_table.h"
#include "rules/reviewed.h"

struct json *report_chips(void)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    json_add_text(top, "reviewed", RULES_REVIEWED);
    struct json *list = json_add_array(top, "chips");
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++) {
        struct json *o = json_add_object(list, NULL);
        json_add_text(o, "gfx", c->gfx);
        json_add_text(o, "codename", c->codename);
        json_add_text(o, "products", c->products);
        json_add_text(o, "family", gfx_family_name(c->family));
        json_add_text(o, "kind", gpu_kind_name(c->kind));
        json_add_int(o, "wave_size", c->wave);
        json_add_int(o, "vgpr_kib", c->vgpr_kib);
        json_add_text(o, "generic", c->generic);
        json_add_text(o, "bf16", c->bf16);
        json_add_bool(o, "fp16_dot", c->fp16_dot);
        json_add_text(o, "matrix_core", c->matrix_core ? c->matrix_core : "none");
        json_add_text(o, "fp8", c->fp8 ? c->fp8 : "none");
        json_add_text(o, "wheel", c->wheel);
        json_add_text(o, "therock", c->therock);
        json_add_text(o, "support", c->support);
        json_add_text(o, "problems", c->problems);
        json_add_text(o, "source", c->source);
    }
    return top;
}
