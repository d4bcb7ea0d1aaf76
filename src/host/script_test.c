/* SPDX-License-Identifier: Apache-2.0 */
#include "host/script_test.h"

#include "base/parse.h"
#include <fnmatch.h>
#include <string.h>

static enum tri as_tri(bool b)
{
    return b ? TRI_YES : TRI_NO;
}

/* -d, -f, -z and such. */
static enum tri test_one(struct walk *w, char op, const struct word *word)
{
    if (word->unknown)
        return TRI_UNKNOWN;
    if (op == 'z' || op == 'n')
        return as_tri((*word->text == '\0') == (op == 'z'));
    if (!strchr("defrwxsLh", op))
        return TRI_UNKNOWN;
    if (!*word->text)
        return TRI_NO;
    const char *path = walk_path(w, word->text);
    if (!path)
        return TRI_UNKNOWN;
    bool is_dir = root_is_dir(w->root, path);
    if (op == 'd')
        return as_tri(is_dir);
    return as_tri(root_exists(w->root, path) && (op != 'f' || !is_dir));
}

static enum tri test_numbers(const char *op, const char *a, const char *b)
{
    int64_t x, y;
    if (!cairn_parse_i64(a, &x) || !cairn_parse_i64(b, &y))
        return TRI_UNKNOWN;
    if (!strcmp(op, "-eq"))
        return as_tri(x == y);
    if (!strcmp(op, "-ne"))
        return as_tri(x != y);
    if (!strcmp(op, "-gt"))
        return as_tri(x > y);
    if (!strcmp(op, "-ge"))
        return as_tri(x >= y);
    if (!strcmp(op, "-lt"))
        return as_tri(x < y);
    return !strcmp(op, "-le") ? as_tri(x <= y) : TRI_UNKNOWN;
}

enum tri script_test(struct walk *w, const struct word *words, size_t n)
{
    if (n && (!strcmp(words[n - 1].text, "]") || !strcmp(words[n - 1].text, "]]")))
        n--;
    if (n && !strcmp(words[0].text, "!")) {
        enum tri inner = script_test(w, words + 1, n - 1);
        return inner == TRI_UNKNOWN ? inner : as_tri(inner == TRI_NO);
    }
    if (n == 2 && words[0].text[0] == '-' && words[0].text[1] && !words[0].text[2])
        return test_one(w, words[0].text[1], &words[1]);
    if (n == 1)
        return words[0].unknown ? TRI_UNKNOWN : as_tri(*words[0].text != '\0');
    if (n != 3 || words[0].unknown || words[2].unknown)
        return TRI_UNKNOWN;
    /* Between [[ and ]] the right side is a pattern; elsewhere a star is literal, so that it does not match.
     * */
    bool same = !fnmatch(words[2].text, words[0].text, 0);
    if (!strcmp(words[1].text, "=") || !strcmp(words[1].text, "=="))
        return as_tri(same);
    return !strcmp(words[1].text, "!=") ? as_tri(!same)
                                        : test_numbers(words[1].text, words[0].text, words[2].text);
}
