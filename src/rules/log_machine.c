/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_see.h"

#include "base/cleanup.h"
#include "base/match.h"
#include "chip/gfxname.h"
#include "chip/gfx_table.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct log_find nothing;

static bool has(const char *s, size_t n, const char *part)
{
    return match_find(s, n, part) != NULL;
}

static void copy_text(char *to, size_t size, const char *s, size_t n)
{
    n = n < size ? n : size - 1;
    memcpy(to, s, n);
    to[n] = '\0';
}

/* A number at s, with the rest of the piece behind it; -1: none.  strtod wants an end. */
static double number_at(const char *s, size_t n, size_t *used)
{
    char buf[32], *end;
    copy_text(buf, sizeof(buf), s, n);
    if (!isdigit((unsigned char)buf[0]) && buf[0] != '.')
        return -1;
    double v = strtod(buf, &end);
    *used = (size_t)(end - buf);
    return v;
}

static void gfx_add(struct log_gfx *g, const char *s, size_t n)
{
    char name[LOG_GFX];
    copy_text(name, sizeof(name), s, n);
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->name[i], name))
            return;
    if (g->n < LOG_MOST_GFX)
        strcpy(g->name[g->n++], name);
}

/* Lines in which a target is not one of this machine's GPUs. */
static bool is_list(const char *s, size_t n)
{
    static const char *const words[] = { "TensileLibrary", ".kdb",         "--offload-arch", "_ARCH",
                                         "_TARGETS",       "upported",     "upport",         "/whl/",
                                         ".whl",           "device-gfx",   "rocm-sdk",       "arch_list",
                                         "nightlies",      "compiled",     "built for",      "http",
                                         "pip install",    "libraries_gfx" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (has(s, n, words[i]))
            return true;
    return false;
}

/* The code was missing for this one. */
static bool is_failing(const char *s, size_t n, size_t at)
{
    static const char *const before[] = { "GPU arch :", "GPU arch:", "code objects found for",
                                          "not supported by" };
    for (size_t i = 0; i < ARRAY_LEN(before); i++)
        if (has(s, n, before[i]) && (at > strlen(before[i]) || i == 3))
            return true;
    return false;
}

/* "Device 1: AMD Radeon Graphics, gfx1036", as ggml lists what it runs on, and others' words for the same. */
static bool is_used(const char *s, size_t at)
{
    const char *device = match_find(s, at, "Device ");
    size_t i = device ? (size_t)(device - s) + strlen("Device ") : at;
    return has(s, at, "AMD arch:") || has(s, at, "sing device") || has(s, at, "cuda:0") ||
           (i + 1 < at && isdigit((unsigned char)s[i]) && s[i + 1] == ':');
}

/* Is one of the table's product names, such as "MI210" or "RX 7900 XTX/XT/GRE", in the text? */
static bool is_product_of(const struct gfx_chip *c, const char *text)
{
    for (const char *p = c->products; *p;) {
        size_t len = strcspn(p, "/,");
        const char *word = p + (!strncmp(p, "Radeon ", 7) ? 7 : 0);
        len -= (size_t)(word - p);
        char product[LOG_TEXT];
        copy_text(product, sizeof(product), word, len);
        const char *at = len >= 4 ? match_find(text, strlen(text), product) : NULL;
        if (at && !isalnum((unsigned char)at[len])) /* "RX 6800" is not in "RX 6800M" */
            return true;
        p = word + len;
        p += strspn(p, "/, ");
    }
    return false;
}

static bool is_misnamed(const char *gfx, const char *product)
{
    const struct gfx_chip *named = gfx[0] ? gfx_find(gfx) : NULL;
    if (!named || is_product_of(named, product))
        return false;
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++)
        if (c != named && is_product_of(c, product))
            return true;
    return false;
}

struct log_find log_see_gfx(struct log_facts *f, const char *s, size_t n, size_t at)
{
    char name[LOG_GFX + 1];
    copy_text(name, sizeof(name), s + at, n - at);
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    size_t len = gfxname_span(name, strlen(name));
    name[len] = '\0';
    if (!len || len >= LOG_GFX || !gfx_find(name))
        return nothing;
    copy_text(f->last_gfx, sizeof(f->last_gfx), name, len);
    if (f->board[0] && has(s, at, "Name:")) {
        f->misnamed |= is_misnamed(name, f->board);
        f->board[0] = '\0';
    }
    if (is_used(s, at))
        gfx_add(&f->used, name, len);
    if (is_failing(s, n, at)) {
        copy_text(f->failing, sizeof(f->failing), name, len);
        gfx_add(&f->devices, name, len);
    } else {
        gfx_add(is_list(s, n) ? &f->listed : &f->devices, name, len);
    }
    return nothing;
}

/* The text up to the end of a name: a comma, a bracket, two spaces. */
static size_t name_span(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && !strchr(",()[]|'\"\t", s[i]) && !(s[i] == ' ' && i + 1 < n && s[i + 1] == ' '))
        i++;
    return i;
}

/* A name that the table has tells the chip. */
struct log_find log_see_product(struct log_facts *f, const char *s, size_t n, size_t at)
{
    char name[LOG_TEXT];
    copy_text(name, sizeof(name), s + at, name_span(s + at, n - at));
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++)
        if (is_product_of(c, name))
            gfx_add(&f->devices, c->gfx, strlen(c->gfx));
    return nothing;
}

/* rocminfo prints the target, then the product: do they fit? */
struct log_find log_see_marketing(struct log_facts *f, const char *s, size_t n, size_t at)
{
    char text[LOG_TEXT];
    at += strlen("Marketing Name:");
    copy_text(text, sizeof(text), s + at, n - at);
    f->misnamed |= is_misnamed(f->last_gfx, text);
    return nothing;
}

/* clinfo prints the product first. */
struct log_find log_see_board(struct log_facts *f, const char *s, size_t n, size_t at)
{
    at += strlen("Board name:");
    copy_text(f->board, sizeof(f->board), s + at, n - at);
    return nothing;
}

/* "2.9.1" before, and "rocm6.4" after a plus sign. */
struct log_find log_see_torch(struct log_facts *f, const char *s, size_t n, size_t at)
{
    size_t from = at, to = at + 1;
    while (from && (isalnum((unsigned char)s[from - 1]) || s[from - 1] == '.'))
        from--;
    while (to < n && (isalnum((unsigned char)s[to]) || s[to] == '.'))
        to++;
    /* torchvision counts from 0, and what pip takes away is not what is used. */
    if (!isdigit((unsigned char)s[from]) || s[from] == '0' || has(s, n, "Uninstalling") ||
        has(s, n, "ninstalled") || has(s, n, "existing installation"))
        return nothing;
    copy_text(f->torch, sizeof(f->torch), s + from, to - from);
    f->build = tolower((unsigned char)s[at + 1]) == 'r'   ? TORCH_ROCM
               : tolower((unsigned char)s[at + 2]) == 'u' ? TORCH_CUDA
                                                          : TORCH_CPU;
    return nothing;
}

static const char *const variables[LOG_N_VARS] = {
    [LOG_OVERRIDE] = "HSA_OVERRIDE_GFX_VERSION",
    [LOG_ROCR_VISIBLE] = "ROCR_VISIBLE_DEVICES",
    [LOG_HIP_VISIBLE] = "HIP_VISIBLE_DEVICES",
    [LOG_CUDA_VISIBLE] = "CUDA_VISIBLE_DEVICES",
    [LOG_ALLOC_HIP] = "PYTORCH_HIP_ALLOC_CONF",
    [LOG_ALLOC_CUDA] = "PYTORCH_CUDA_ALLOC_CONF",
    [LOG_ALLOC_NEW] = "PYTORCH_ALLOC_CONF",
    [LOG_NO_CACHING_HIP] = "PYTORCH_NO_HIP_MEMORY_CACHING",
    [LOG_NO_CACHING_CUDA] = "PYTORCH_NO_CUDA_MEMORY_CACHING",
    [LOG_AOTRITON] = "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL",
    [LOG_SDMA] = "HSA_ENABLE_SDMA",
    [LOG_INTERRUPT] = "HSA_ENABLE_INTERRUPT",
    [LOG_LIBRARY_PATH] = "LD_LIBRARY_PATH",
    [LOG_HIPBLASLT] = "TORCH_BLAS_PREFER_HIPBLASLT",
    [LOG_P2P] = "NCCL_P2P_DISABLE",
};

const char *log_var_name(enum log_var v)
{
    return variables[v];
}

/* Advice is no setting: messages name variables that would help. */
static bool is_advice(const char *s, size_t n)
{
    static const char *const words[] = { "try setting", "nable it with", "to avoid fragmentation",
                                         "consider",    "Please ",       "please ",
                                         "Try ",        "You can",       "you can",
                                         "hint",        "Set ",          "should ",
                                         "recommend",   "NOSET_" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (has(s, n, words[i]))
            return true;
    return false;
}

/* Past a quote at s[*i], which inside of a quoted text has a backslash before it; 0: there is none. */
static char take_quote(const char *s, size_t n, size_t *i)
{
    size_t at = *i + (*i < n && s[*i] == '\\');
    if (at >= n || (s[at] != '"' && s[at] != '\''))
        return 0;
    *i = at + 1;
    return s[at];
}

/* "map[NAME:value NAME: NAME:value]", as programs in Go print their environment: what is empty is not set. */
static bool go_value_span(const char *s, size_t n, size_t after, size_t *from, size_t *len)
{
    size_t end = after + 1;
    while (end < n && s[end] != ' ' && s[end] != ']')
        end++;
    *from = after + 1;
    *len = end - *from;
    return *len > 0;
}

/* NAME=value, NAME = value, NAME: value, or fish's set -gx NAME value; the value may be quoted, or missing. */
static bool value_span(const char *s, size_t n, size_t at, size_t after, size_t *from, size_t *len)
{
    bool fish = at >= 4 && has(s, at, "set -") && after < n && s[after] == ' ';
    bool spaced = n - after > 3 && !memcmp(s + after, " = ", 3);
    if (after < n && s[after] == ':' && has(s, at, "map["))
        return go_value_span(s, n, after, from, len);
    if (at && (isalnum((unsigned char)s[at - 1]) || s[at - 1] == '_' || s[at - 1] == '$' || s[at - 1] == '{'))
        return false;
    if (after >= n ||
        (s[after] != '=' && !(s[after] == ':' && after + 1 < n && s[after + 1] == ' ') && !fish && !spaced))
        return false;
    size_t i = after + (spaced ? 3 : s[after] == ':' ? 2 : 1), dash = 0;
    while (dash < at && s[dash] == ' ')
        dash++;
    /* In a list of docker compose, quotes are part of the value. */
    bool listed = dash + 2 == at && s[dash] == '-' && s[after] == '=';
    char quote = listed ? 0 : take_quote(s, n, &i);
    size_t end = i;
    while (end < n && s[end] != '\\' &&
           (quote ? s[end] != quote : !strchr(listed ? " \t\r" : " ;&|)'\"\t\r", s[end])))
        end++;
    *from = i;
    *len = end - i;
    return true;
}

struct log_find log_see_variable(struct log_facts *f, const char *s, size_t n, size_t at)
{
    for (int v = 0; v < LOG_N_VARS; v++) {
        size_t len = strlen(variables[v]), from, value;
        if (n - at < len || strncasecmp(s + at, variables[v], len) != 0 || is_advice(s, n))
            continue;
        if (v == LOG_OVERRIDE)
            f->override_asked |= has(s, at, "grep ") || has(s, at, "printenv ") || (at && s[at - 1] == '$');
        if (!value_span(s, n, at, at + len, &from, &value))
            continue;
        f->vars[v].set = true;
        copy_text(f->vars[v].value, sizeof(f->vars[v].value), s + from, value);
    }
    return nothing;
}

/* "6.64 GiB" behind a word, in bytes; -1: not there, or more than any machine has. */
static double bytes_after(const char *s, size_t n, const char *word)
{
    static const struct {
        const char *unit;
        double bytes;
    } units[] = { { " GiB", 1 << 30 }, { " MiB", 1 << 20 }, { " KiB", 1 << 10 }, { " bytes", 1 } };
    static const double most = 1e18; /* an int64_t holds it */
    const char *at = match_find(s, n, word);
    if (!at)
        return -1;
    at += strlen(word);
    size_t left = n - (size_t)(at - s), used = 0;
    double v = number_at(at, left, &used);
    for (size_t i = 0; v >= 0 && i < ARRAY_LEN(units); i++)
        if (left - used >= strlen(units[i].unit) &&
            !strncasecmp(at + used, units[i].unit, strlen(units[i].unit)))
            return v * units[i].bytes < most ? v * units[i].bytes : -1;
    return -1;
}

/* "7.10 GiB is reserved": the number stands before the word. */
static double bytes_before(const char *s, size_t n, const char *word)
{
    const char *at = match_find(s, n, word);
    if (!at)
        return -1;
    const char *p = at;
    while (p > s && p[-1] == ' ')
        p--;
    for (int spaces = 0; p > s; p--)
        if (p[-1] == ' ' && ++spaces == 2)
            break;
    return bytes_after(p, n - (size_t)(p - s), "");
}

/* "Device 1: AMD Radeon Graphics, ...", as ggml lists them: the name tells an integrated GPU where there is no target. */
struct log_find log_see_device(struct log_facts *f, const char *s, size_t n, size_t at)
{
    size_t i = at + strlen("Device ");
    if (i + 2 >= n || !isdigit((unsigned char)s[i]) || s[i + 1] != ':')
        return nothing;
    uint32_t bit = 1u << (s[i] - '0');
    size_t from = i + 2, len = 0;
    while (from + len < n && s[from + len] != ',')
        len++;
    if (match_any(s + from, len,
                  "Radeon Graphics|Radeon(TM) Graphics|Vega 3|Vega 6|Vega 7|Vega 8|Vega 11|Vega Series"))
        f->small |= bit;
    else if (match_any(s + from, len, "Radeon RX|Radeon PRO|Radeon AI|Radeon VII|Instinct"))
        f->large |= bit;
    return nothing;
}

/* A card is there, and the device that failed is not it. */
static struct log_find judge_current(const struct log_facts *f)
{
    bool is_small = f->current && f->small & 1u << (f->current - 1);
    return is_small && f->large ? (struct log_find){ ISSUE_WRONG_GPU, 92, 0 } : nothing;
}

/* The number of the device that failed, behind a word. */
static void see_failed_device(struct log_facts *f, const char *s, size_t n, const char *word)
{
    const char *at = match_find(s, n, word);
    size_t used = 0, from = at ? (size_t)(at - s) + strlen(word) : n;
    double number = from < n ? number_at(s + from, n - from, &used) : -1;
    f->current = number >= 0 && number < LOG_MOST_GFX ? (int)number + 1 : 0;
}

/* As ggml prints it. */
struct log_find log_see_current(struct log_facts *f, const char *s, size_t n, size_t at)
{
    see_failed_device(f, s + at, n - at, "current device: ");
    return judge_current(f);
}

/* "Memory access fault by GPU node-2": node 0 is the processor.  A card is the first GPU, if there is one. */
struct log_find log_see_node(struct log_facts *f, const char *s, size_t n, size_t at)
{
    size_t used = 0, from = at + strlen("by GPU node-");
    double node = from < n ? number_at(s + from, n - from, &used) : -1;
    if (f->current || node < 2 || node > LOG_MOST_GFX)
        return nothing;
    f->current = (int)node;
    return judge_current(f);
}

/* "ROCm1 KV buffer size": ggml has spread a model over both GPUs. */
struct log_find log_see_second(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)at;
    for (size_t i = 0; has(s, n, "buffer size") && f->devices.n == 2 && i < 2; i++)
        gfx_add(&f->used, f->devices.name[i], strlen(f->devices.name[i]));
    return nothing;
}

bool log_oom_is_complete(const struct log_oom *o)
{
    return o->total >= 0 && o->unused >= 0;
}

struct log_find log_see_oom(struct log_facts *f, const char *s, size_t n, size_t at)
{
    if (f->oom.seen && log_oom_is_complete(&f->oom))
        return nothing;
    struct log_oom o = { .seen = true };
    s += at;
    n -= at;
    o.want = bytes_after(s, n, "Tried to allocate ");
    o.total = bytes_after(s, n, has(s, n, "total capacity of ") ? "total capacity of " : "total capacty of ");
    o.free = bytes_before(s, n, "is free");
    o.used = bytes_before(s, n, "is allocated by PyTorch");
    o.unused = bytes_before(s, n, "is reserved by PyTorch but unallocated");
    if (o.total < 0) { /* as up to torch 2.0 */
        double reserved = bytes_before(s, n, "reserved in total");
        o.used = bytes_before(s, n, "already allocated");
        o.total = bytes_before(s, n, "total capacity");
        o.free = bytes_before(s, n, "free;");
        o.unused = reserved >= 0 && o.used >= 0 ? reserved - o.used : -1;
    }
    o.capped = has(s, n, "allowed;");
    see_failed_device(f, s, n, "GPU ");
    f->oom = o;
    return judge_current(f);
}

/* Somebody asks PyTorch for a GPU; root may get another answer. */
struct log_find log_see_question(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)n;
    f->asked_for = 3;
    f->asked_by_root = has(s, at, "sudo ");
    return nothing;
}

/* The whole of a short line, or the last of what it prints. */
static bool ends_with_word(const char *s, size_t n, const char *word)
{
    enum { LONGEST = 60 };
    size_t len = strlen(word);
    return n >= len && n < LONGEST && !strncasecmp(s + n - len, word, len) &&
           (n == len || s[n - len - 1] == ' ');
}

/* What the runtime and Python print on the way to the answer: ":3:rocdevice.cpp ...", a warning and the line of
 * code that it quotes. */
static bool is_between(const char *s, size_t n)
{
    return (n > 3 && s[0] == ':' && isdigit((unsigned char)s[1]) && s[2] == ':') ||
           match_any(s, n, "Warning: |return torch._C.|MIOpen(HIP)");
}

struct log_find log_facts_answer(struct log_facts *f, const char *s, size_t n)
{
    if (is_between(s, n))
        return nothing;
    f->asked_for--;
    bool no = ends_with_word(s, n, "False") || (n == 1 && *s == '0'), yes = ends_with_word(s, n, "True");
    if (!no && !yes)
        return nothing;
    f->asked_for = 0;
    f->answered_no |= no && !f->asked_by_root;
    if (no)
        return (struct log_find){ ISSUE_NO_DEVICE, 62, RULE_CUDA };
    return f->asked_by_root && f->answered_no ? (struct log_find){ ISSUE_PERMISSION, 84, RULE_CUDA }
                                              : nothing;
}

/* What works for root and fails for the user is a matter of permissions, whatever the message says. */
static struct log_find judge_root(const struct log_facts *f)
{
    return f->user_failed && f->root_fine ? (struct log_find){ ISSUE_PERMISSION, 90, 0 } : nothing;
}

struct log_find log_see_rocminfo(struct log_facts *f, const char *s, size_t n, size_t at)
{
    size_t after = at + strlen("rocminfo");
    if (after == n || s[after] == ' ') /* the command, not its source file */
        f->by_root = has(s, at, "sudo ");
    return nothing;
}

struct log_find log_see_hsa_failed(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)s, (void)n, (void)at;
    if (f->by_root)
        f->root_fine = false;
    else
        f->user_failed = true;
    return judge_root(f);
}

struct log_find log_see_hsa_fine(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)s, (void)n, (void)at;
    f->root_fine |= f->by_root;
    return judge_root(f);
}

/* "with sudo it works" */
struct log_find log_see_root_told(struct log_facts *f, const char *s, size_t n, size_t at)
{
    (void)at;
    f->root_fine |=
        match_any(s, n, "works|is fine|sees the|shows the") && !match_any(s, n, "not work|n't work|neither");
    return judge_root(f);
}
