/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include "check.h"

static const char *suggested(const char *word, const char *const *candidates)
{
    struct suggestion n = { .word = word };
    for (; *candidates; candidates++)
        suggest_try(&n, *candidates);
    return n.best;
}

static void distance_counts_edits(void)
{
    CHECK_INT(suggest_distance("", ""), 0);
    CHECK_INT(suggest_distance("", "abc"), 3);
    CHECK_INT(suggest_distance("abc", ""), 3);
    CHECK_INT(suggest_distance("steps", "steps"), 0);
    CHECK_INT(suggest_distance("stepz", "steps"), 1);
    CHECK_INT(suggest_distance("step", "steps"), 1);
    CHECK_INT(suggest_distance("stteps", "steps"), 1);
    CHECK_INT(suggest_distance("setps", "steps"), 1);
    CHECK_INT(suggest_distance("kitten", "sitting"), 3);
}

static void distance_of_long_words_is_infinite(void)
{
    char word[65];
    memset(word, 'a', sizeof(word));
    word[63] = '\0';
    CHECK_INT(suggest_distance(word, word), 0);
    word[63] = 'a';
    word[64] = '\0';
    CHECK(suggest_distance(word, "a") == SIZE_MAX);
    CHECK(suggest_distance("a", word) == SIZE_MAX);
}

static void the_closest_is_found(void)
{
    const char *const words[] = { "batch", "steps", "seq", "warmup", "weight_decay", NULL };
    CHECK_STR(suggested("stepz", words), "steps");
    CHECK_STR(suggested("sqe", words), "seq");
    CHECK_STR(suggested("weightdecay", words), "weight_decay");
    CHECK_STR(suggested("warm_ups", words), "warmup");
}

static void what_is_far_is_not_offered(void)
{
    const char *const words[] = { "a", "lr", "seq", "steps", NULL };
    CHECK_STR(suggested("frobnicate", words), NULL);
    CHECK_STR(suggested("b", words), NULL); /* nothing of it is left */
    CHECK_STR(suggested("stops_it", words), NULL);
    CHECK_STR(suggested("", words), NULL);
}

static void of_two_as_near_the_first_wins(void)
{
    const char *const words[] = { "beta1", "beta2", NULL };
    CHECK_STR(suggested("beta", words), "beta1");
    CHECK_STR(suggested("beta22", words), "beta2");
}

int main(void)
{
    RUN(distance_counts_edits);
    RUN(distance_of_long_words_is_infinite);
    RUN(the_closest_is_found);
    RUN(what_is_far_is_not_offered);
    RUN(of_two_as_near_the_first_wins);
    return check_done();
}
