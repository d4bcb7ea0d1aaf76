/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as the target of a request: refused, or parts and values that name nothing above and are text; encoded
 * again they are the same. */
#include "web/target.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "fuzz.h"

static void check_text(const char *s)
{
    size_t n = strlen(s);
    FUZZ_REQUIRE(str_is_utf8(s) && str_clean_span(s, n) == n);
}

static void add_encoded(struct str *out, const char *s)
{
    for (; *s; s++)
        str_addf(out, "%%%02X", (unsigned char)*s);
}

static void check_again(const struct target *t)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(str_release) struct str s = { 0 };
    struct target again;
    for (size_t i = 0; i < t->n_parts; i++) {
        str_add(&s, "/");
        add_encoded(&s, t->part[i]);
    }
    str_add(&s, t->n_parts ? "?" : "/?");
    for (size_t i = 0; i < t->n_pairs; i++) {
        add_encoded(&s, t->pair[i].name);
        str_add(&s, "=");
        add_encoded(&s, t->pair[i].value);
        str_add(&s, "&");
    }
    FUZZ_REQUIRE(!target_parse(s.s, &a, &again) && again.n_parts == t->n_parts &&
                 again.n_pairs == t->n_pairs);
    for (size_t i = 0; i < t->n_parts; i++)
        FUZZ_REQUIRE(!strcmp(again.part[i], t->part[i]));
    for (size_t i = 0; i < t->n_pairs; i++)
        FUZZ_REQUIRE(!strcmp(again.pair[i].name, t->pair[i].name) &&
                     !strcmp(again.pair[i].value, t->pair[i].value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(mem_free) char *text = fuzz_text(data, size);
    CLEANUP(arena_release) struct arena a = { 0 };
    struct target t;
    if (target_parse(text, &a, &t))
        return 0;
    FUZZ_REQUIRE(text[0] == '/' && t.n_parts <= TARGET_PARTS && t.n_pairs <= TARGET_PAIRS);
    for (size_t i = 0; i < t.n_parts; i++) {
        const char *part = t.part[i];
        check_text(part);
        FUZZ_REQUIRE(!strchr(part, '/') && strcmp(part, ".") && strcmp(part, ".."));
        FUZZ_REQUIRE(*part || (i == t.n_parts - 1 && i)); /* only behind the last slash */
    }
    for (size_t i = 0; i < t.n_pairs; i++) {
        check_text(t.pair[i].name);
        check_text(t.pair[i].value);
        FUZZ_REQUIRE(target_value(&t, t.pair[i].name));
    }
    check_again(&t);
    return 0;
}
