/* SPDX-License-Identifier: Apache-2.0
 * Reads a tokenizer.json of model type Unigram. */
#include "text/unigram.h"

#include "text/unigram_parts.h"

int unigram_parse_json(struct unigram **out, const char *name, const char *json, size_t n,
                       struct cairn_error *err)
{
    (void)out;
    (void)json;
    (void)n;
    return cairn_fail(err, CAIRN_EFORMAT, "%s: a tokenizer.json is not supported yet", name);
}

int unigram_hf_encode(struct unigram_work *w, const char *s, size_t n, struct cairn_error *err)
{
    return unigram_encode_word(w, s, n, err);
}
