/* SPDX-License-Identifier: Apache-2.0 */
#include "text/unicode_form.h"

#include "text/unicode.h"
#include <stdlib.h>
#include <utf8proc.h>

static const utf8proc_option_t options[] = {
    [UNICODE_NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
    [UNICODE_NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
    [UNICODE_NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
    [UNICODE_NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
};

int unicode_add_form(struct str *out, enum unicode_form form, const char *text, size_t n,
                     struct cairn_error *err)
{
    if (!n || (form == UNICODE_NFC && unicode_nfc_span(text, n) == n)) {
        str_addn(out, text, n);
        return 0;
    }
    utf8proc_uint8_t *made = NULL;
    utf8proc_ssize_t size =
        utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &made, options[form]);
    if (size < 0)
        return cairn_fail(err, size == UTF8PROC_ERROR_NOMEM ? CAIRN_ENOMEM : CAIRN_EFORMAT,
                          "cannot normalize %zu bytes of text: %s", n, utf8proc_errmsg(size));
    str_addn(out, (const char *)made, (size_t)size);
    free(made);
    return 0;
}

uint32_t unicode_lower(uint32_t c)
{
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
}
