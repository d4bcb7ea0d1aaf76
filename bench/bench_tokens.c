/* SPDX-License-Identifier: Apache-2.0
 * Text to tokens, in memory, beside the package `tokenizers` in the same run.
 *
 *     bench_tokens FILE [ROUNDS [COMMAND...]]     default: best of 3
 *
 * COMMAND, with tokenizer.json, FILE and the rounds behind it, is tokens_python.py with its interpreter.  Learns 8192 tokens
 * from FILE first.  CSV: share is the peer's time divided by ours. */
#include "bench.h"

#include "text/tokenizer.h"
#include "text/tokenizer_train.h"
#include <sched.h>
#include <unistd.h>

enum { VOCAB = 8192 };

struct text {
    char *s;
    size_t n;
};

static int fail(const struct cairn_error *err)
{
    fprintf(stderr, "bench_tokens: %s\n", err->msg);
    return 1;
}

static struct text read_text(const char *path)
{
    struct text t = { 0 };
    FILE *f = fopen(path, "r");
    if (f && !fseek(f, 0, SEEK_END) && ftell(f) > 0) {
        t.n = (size_t)ftell(f);
        rewind(f);
        t.s = malloc(t.n);
        t.n = t.s ? fread(t.s, 1, t.n, f) : 0;
    }
    if (f)
        fclose(f);
    return t;
}

static double train_seconds(struct text t, struct tokenizer **out, struct cairn_error *err)
{
    CLEANUP(word_counts_cleanup) struct word_counts *w = word_counts_new();
    double start = bench_now();
    if (word_counts_add(w, t.s, t.n, err) || tokenizer_train(w, VOCAB, NULL, out, err))
        return -1;
    return bench_now() - start;
}

/* The text comes back as it was, and the best time of the rounds. */
static double encode_seconds(const struct tokenizer *t, struct text text, int rounds, size_t *n)
{
    double best = -1;
    for (int i = 0; i < rounds; i++) {
        CLEANUP(token_list_release) struct token_list ids = { 0 };
        CLEANUP(str_release) struct str back = { 0 };
        struct cairn_error err = { 0 };
        double start = bench_now();
        if (tokenizer_encode(t, text.s, text.n, &ids, &err))
            return fail(&err), -1;
        double took = bench_now() - start;
        if (tokenizer_decode(t, ids.ids, ids.n, &back, &err) || back.len != text.n ||
            memcmp(back.s, text.s, text.n))
            return fputs("bench_tokens: the text does not come back\n", stderr), -1;
        best = best < 0 || took < best ? took : best;
        *n = ids.n;
    }
    return best;
}

/* The peer's seconds: to learn, on one thread, on all; and how many tokens it found. */
struct peer {
    double train, one, all;
    size_t tokens;
};

static bool ask_peer(char **command, const char *json, const char *path, int rounds, struct peer *out)
{
    CLEANUP(str_release) struct str line = { 0 };
    for (; *command; command++)
        str_addf(&line, "'%s' ", *command);
    str_addf(&line, "'%s' '%s' %d", json, path, rounds);
    FILE *f = popen(line.s, "r");
    bool got = f && fscanf(f, "%lf %lf %lf %zu", &out->train, &out->one, &out->all, &out->tokens) == 4;
    return f && !pclose(f) && got;
}

static void row(const char *name, int threads, double bytes, double ours, double theirs)
{
    printf("%s,%s,%s,%d,%.4f,tokenizers,%.4f,%.2f\n", bench_machine(), bench_commit(), name, threads,
           bytes / ours / 1e9, theirs > 0 ? bytes / theirs / 1e9 : 0, theirs > 0 ? theirs / ours : 0);
}

int main(int argc, char **argv)
{
    struct cairn_error err = { 0 };
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = NULL;
    int rounds = argc > 2 ? atoi(argv[2]) : 3;
    struct text text = argc > 1 ? read_text(argv[1]) : (struct text){ 0 };
    if (!text.n)
        return fputs("usage: bench_tokens FILE [ROUNDS [COMMAND...]]\n", stderr), 2;
    char json[] = "/tmp/bench_tokens.XXXXXX";
    int fd = mkstemp(json);
    double train = train_seconds(text, &t, &err);
    if (fd < 0 || train < 0 || tokenizer_save(t, json, &err))
        return fail(&err);
    cpu_set_t mine, one;
    size_t tokens = 0;
    sched_getaffinity(0, sizeof(mine), &mine);
    double all_s = encode_seconds(t, text, rounds, &tokens);
    struct peer peer = { 0 };
    if (argc > 3 && !ask_peer(argv + 3, json, argv[1], rounds, &peer))
        fputs("bench_tokens: no figures of tokenizers\n", stderr);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
    double one_s = encode_seconds(t, text, rounds, &tokens);
    close(fd);
    unlink(json);
    free(text.s);
    if (all_s < 0 || one_s < 0)
        return 1;
    if (peer.tokens && peer.tokens != tokens)
        return fprintf(stderr, "bench_tokens: %zu tokens, tokenizers has %zu\n", tokens, peer.tokens), 1;
    puts("machine,commit,case,threads,gb_per_s,peer,peer_gb_per_s,share");
    row("learn 8192 tokens", 1, (double)text.n, train, peer.train);
    row("encode", 1, (double)text.n, one_s, peer.one);
    row("encode", CPU_COUNT(&mine), (double)text.n, all_s, peer.all);
    return 0;
}
