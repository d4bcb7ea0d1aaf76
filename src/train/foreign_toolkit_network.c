/* SPDX-License-Identifier: Apache-2.0
 * The LoRA of an ai-toolkit job: rank, layers, and the file to start from. */
#include "media/dataset_parts.h"
#include "os/info.h"
#include "train/foreign_toolkit_parts.h"
#include <string.h>

/* ---- layers ---- */

/* The linear layers of a block, and what diffusers calls them: filters are parts of those names. */
static const struct layer {
    const char *ours, *theirs;
} layers[] = {
    { "self_attn.q", "attn1.to_q" },  { "self_attn.k", "attn1.to_k" },
    { "self_attn.v", "attn1.to_v" },  { "self_attn.o", "attn1.to_out.0" },
    { "cross_attn.q", "attn2.to_q" }, { "cross_attn.k", "attn2.to_k" },
    { "cross_attn.v", "attn2.to_v" }, { "cross_attn.o", "attn2.to_out.0" },
    { "ffn.0", "ffn.net.0.proj" },    { "ffn.2", "ffn.net.2" },
};
enum { LAYERS = ARRAY_LEN(layers), MOST_BLOCKS = 1000 };

struct filters {
    const struct yaml_node *ignore, *only; /* lists of texts; NULL: none */
};

static bool contains_any(const char *name, const struct yaml_node *list)
{
    for (const struct yaml_node *i = list->first; i; i = i->next)
        if (strstr(name, i->text))
            return true;
    return false;
}

/* `expert`: "", "transformer_1." or "transformer_2.". */
static bool passes(const struct toolkit *t, const struct filters *f, const char *expert, size_t block,
                   size_t layer)
{
    const char *name = arena_printf(t->a, "transformer.%sblocks.%zu.%s", expert, block, layers[layer].theirs);
    return !(f->ignore && contains_any(name, f->ignore)) && (!f->only || contains_any(name, f->only));
}

struct chosen {
    bool layer[MOST_BLOCKS][LAYERS];
    size_t n; /* of all */
};

static void choose(const struct toolkit *t, const struct filters *f, const char *expert, size_t blocks,
                   struct chosen *out)
{
    out->n = 0;
    for (size_t b = 0; b < blocks; b++)
        for (size_t i = 0; i < LAYERS; i++)
            out->n += out->layer[b][i] = passes(t, f, expert, b, i);
}

/* Whether every block has the same layers as the first. */
static bool are_alike(const struct chosen *c, size_t blocks)
{
    for (size_t b = 1; b < blocks; b++)
        if (memcmp(c->layer[b], c->layer[0], sizeof(c->layer[0])) != 0)
            return false;
    return true;
}

static void add_targets(const struct toolkit *t, const struct chosen *c, size_t blocks, const char *from)
{
    const char **names = NULL;
    size_t n = 0;
    bool alike = are_alike(c, blocks);
    for (size_t b = 0; b < (alike ? 1 : blocks); b++) {
        size_t here = 0;
        for (size_t i = 0; i < LAYERS; i++)
            here += c->layer[b][i];
        if (!alike && here == LAYERS)
            *ARENA_PUSH(t->a, names, n) = arena_printf(t->a, "blocks.%zu.*", b);
        for (size_t i = 0; i < LAYERS && (alike || here < LAYERS); i++)
            if (c->layer[b][i])
                *ARENA_PUSH(t->a, names, n) = alike ? arena_printf(t->a, "blocks.*.%s", layers[i].ours)
                                                    : arena_printf(t->a, "blocks.%zu.%s", b, layers[i].ours);
    }
    foreign_add_list(t->job, t->a, "lora.targets", names, n, toolkit_place(t, toolkit_get(t, from)), from);
}

static int add_filters(const struct toolkit *t, const struct toolkit_model *m)
{
    static const char ignore[] = "network.network_kwargs.ignore_if_contains";
    static const char only[] = "network.network_kwargs.only_if_contains";
    struct filters f = { toolkit_get(t, ignore), toolkit_get(t, only) };
    const char *from = f.only ? only : ignore;
    size_t blocks = m->blocks < MOST_BLOCKS ? m->blocks : MOST_BLOCKS;
    struct chosen *high = ARENA_NEW(t->a, struct chosen, 1), *low = ARENA_NEW(t->a, struct chosen, 1);
    if (!f.ignore && !f.only)
        return 0;
    choose(t, &f, m->experts ? "transformer_1." : "", blocks, high);
    choose(t, &f, m->experts ? "transformer_2." : "", blocks, low);
    struct chosen *c = m->high ? high : low;
    if (m->high && m->low && memcmp(high->layer, low->layer, sizeof(high->layer)) != 0)
        return toolkit_refuse(t, from, "set train_high_noise or train_low_noise to false to train one expert",
                              "cairn trains the same layers of both experts");
    if (!c->n)
        return toolkit_fail(t, from, "the names are those of diffusers, such as attn1.to_q or ffn.net.0",
                            "no layer is left to train");
    if (c->n < blocks * LAYERS)
        add_targets(t, c, blocks, from);
    return 0;
}

/* ---- the file to start from ---- */

static const char *replaced(const struct toolkit *t, const char *path, const char *end, const char *with)
{
    size_t n = strlen(path) - strlen(end);
    return arena_printf(t->a, "%.*s%s", (int)n, path, with);
}

/* With two experts, one of its two files stands for both. */
static int add_start(const struct toolkit *t, const struct toolkit_model *m)
{
    static const char key[] = "network.pretrained_lora_path", high[] = "_high_noise.safetensors",
                      low[] = "_low_noise.safetensors";
    const char *path = toolkit_text(t, key, NULL);
    struct os_info info;
    if (!path || !*path)
        return 0;
    path = dataset_resolve(path, t->path, NULL, t->a);
    if (os_info(path, &info))
        return toolkit_fail(t, key, "set it to a LoRA file, or leave it out", "%.300s does not exist", path);
    bool is_high = str_ends(path, high), is_low = str_ends(path, low);
    if (!m->experts || !m->high || !m->low || (!is_high && !is_low)) {
        toolkit_add(t, "lora.path", path, key);
        return 0;
    }
    const char *other = is_high ? replaced(t, path, high, low) : replaced(t, path, low, high);
    if (os_info(other, &info))
        return toolkit_fail(t, key, "train one expert, or put the other file beside it",
                            "%.300s, the other expert's, does not exist", other);
    toolkit_add(t, "lora.path", is_high ? other : path, key);
    toolkit_add(t, "lora.high_noise_path", is_high ? path : other, key);
    return 0;
}

int toolkit_add_network(const struct toolkit *t, const struct toolkit_model *m)
{
    static const char *const ranks[] = { "network.rank", "network.linear" };
    const char *from = toolkit_get(t, ranks[0]) ? ranks[0] : ranks[1];
    if (!toolkit_get(t, "network"))
        return toolkit_refuse(t, "network", "add network: {type: lora, linear: 32}",
                              "the job has none, and cairn trains a Wan model through a LoRA only");
    toolkit_add(t, "lora.rank", arena_printf(t->a, "%.0f", toolkit_real(t, from, 4)), from);
    if (toolkit_get(t, "network.pretrained_lora_path")) /* whose alpha does not count either */
        toolkit_add(t, "lora.alpha", foreign_value(t->job, "lora.rank"), NULL);
    if (!toolkit_bool(t, "network.split_multistage_loras", true))
        toolkit_add(t, "save.split", "false", "network.split_multistage_loras");
    if (toolkit_real(t, "network.dropout", 0) > 0)
        foreign_note(t->job, t->a,
                     "network.dropout: cairn drops inputs of the A matrices, ai-toolkit their outputs");
    return add_filters(t, m) || add_start(t, m) ? -1 : 0;
}
