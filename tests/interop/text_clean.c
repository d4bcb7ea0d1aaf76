/* SPDX-License-Identifier: Apache-2.0
 * Cleaned captions for text_clean.py: texts on stdin, each behind its length (32 bits); the same on stdout. */
#include "text/text_clean.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int read_exactly(void *bytes, size_t n)
{
    return fread(bytes, 1, n, stdin) == n ? 0 : -1;
}

int main(void)
{
    uint32_t size;
    while (!read_exactly(&size, sizeof(size))) {
        CLEANUP(str_release) struct str out = { 0 };
        CLEANUP(mem_free) char *text = malloc(size ? size : 1);
        struct cairn_error err = { 0 };
        if (!text || read_exactly(text, size))
            return fprintf(stderr, "text_clean: cut input\n"), 1;
        if (text_clean(text, size, &out, &err))
            return fprintf(stderr, "text_clean: %s\n", err.msg), 1;
        uint32_t n = (uint32_t)out.len;
        fwrite(&n, sizeof(n), 1, stdout);
        fwrite(out.s, 1, out.len, stdout);
    }
    return fflush(stdout) || ferror(stdout) ? 1 : 0;
}
