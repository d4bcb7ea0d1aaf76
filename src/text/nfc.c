/* SPDX-License-Identifier: Apache-2.0 */
#include "text/nfc.h"

#include "text/unicode.h"
#include <stdlib.h>
#include <utf8proc.h>

int text_add_nfc(struct str *out, const char *text, size_t n, struct cairn_error *err)
{
    if (unicode_nfc_span(text, n) == n) {
        str_addn(out, text, n);
        return 0;
    }
    utf8proc_uint8_t *composed = NULL;
    utf8proc_ssize_t size = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &composed,
                                         UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (size < 0)
        return cairn_fail(err, size == UTF8PROC_ERROR_NOMEM ? CAIRN_ENOMEM : CAIRN_EFORMAT,
                          "cannot normalize %zu bytes of text: %s", n, utf8proc_errmsg(size));
    str_addn(out, (const char *)composed, (size_t)size);
    free(composed);
    return 0;
}
