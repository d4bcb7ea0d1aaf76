/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_told.h"

#include "fake.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BAD_MEMORY = 214, LOST = 700 };

bool fake_is_set(const char *word)
{
    char name[64];
    const char *at = fake_word(word);
    if (!at)
        return false;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ","), at);
    return getenv(name) != NULL;
}

/* How often the call that a word names was called since the words are these. */
struct count {
    int calls;
    char words[256];
};

static void begin_anew(struct count *c)
{
    const char *words = getenv("CAIRN_FAKE_HIP");
    if (strncmp(c->words, words, sizeof(c->words) - 1))
        c->calls = 0;
    snprintf(c->words, sizeof(c->words), "%s", words);
}

static int launches; /* of the kernel that "after" names */

void fake_launched(const char *kernel)
{
    const char *at = fake_word("after");
    size_t n = strlen(kernel);
    launches += at && !strncmp(at, kernel, n) && at[n] == ':';
}

static bool is_time(void)
{
    const char *at = fake_word("after");
    int nth = 0;
    return !at || (sscanf(at, "%*[^:]:%d", &nth) == 1 && launches >= nth);
}

/* Whether this call is the one that `word` names; its answer, where one is told.  One call is named at a time. */
static bool is_told(const char *word, const char *name, struct count *count, int *answer)
{
    const char *at = fake_word(word);
    size_t n = strlen(name);
    int nth = 0, code = 0;
    if (!at || fake_is_set("unless") || !is_time() || strncmp(at, name, n) || at[n] != ':' ||
        sscanf(at + n, ":%d:%d", &nth, &code) < 1)
        return false;
    if (answer)
        *answer = code;
    begin_anew(count);
    return ++count->calls == nth;
}

bool fake_blocked;

void fake_never_return(void)
{
    fake_blocked = true;
    for (;;)
        pause();
}

/* The runtime waits for its device when the process ends. */
__attribute__((destructor)) static void end(void)
{
    if (fake_blocked)
        fake_never_return();
}

static void delay(const char *name)
{
    static struct count calls, all_calls;
    static bool crawls;
    int ms = 0, all_ms = 0;
    bool now = is_told("slow", name, &calls, &ms);
    crawls = is_told("crawl", name, &all_calls, &all_ms) || crawls;
    ms = now ? ms : crawls ? all_ms : 0;
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

int fake_injected(const char *name)
{
    static struct count fails, denies, goes, blocks;
    static const char *denied;
    static int lost, denial;
    int code = 0;
    if (lost)
        return lost;
    delay(name);
    if (is_told("block", name, &blocks, NULL))
        fake_never_return();
    if (is_told("gone", name, &goes, &code))
        return lost = code;
    if (is_told("deny", name, &denies, &denial))
        denied = name;
    if (denied && !strcmp(denied, name))
        return denial;
    if (!is_told("fail", name, &fails, &code))
        return 0;
    lost = code >= LOST || code == BAD_MEMORY ? code : 0;
    return code;
}

bool fake_names(const char *word, const char *kernel)
{
    const char *told = fake_word(word);
    size_t n = told ? strcspn(told, ",") : 0;
    return n && !strncmp(kernel, told, n);
}

bool fake_hangs(const char *name)
{
    static struct count hung;
    return is_told("hang", name, &hung, NULL);
}

bool fake_spoils(const char *name)
{
    static struct count spoilt;
    return is_told("spoil", name, &spoilt, NULL);
}
