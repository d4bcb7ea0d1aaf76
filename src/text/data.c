/* SPDX-License-Identifier: Apache-2.0 */
#include "text/data.h"

#include "base/hash.h"
#include "base/splitmix.h"
#include "base/progress.h"
#include "base/shuffle.h"
#include "text/text_source.h"
#include "text/token_file.h"
#include "text/tokenizer_train.h"
#include <stdlib.h>
#include <string.h>

/* A range of a file's tokens, and its position in the token stream. */
struct segment {
    const struct token_file *file;
    uint64_t from, at, n;
};

struct token_stream {
    struct segment *segments;
    size_t n_segments;
    uint64_t n, windows;
};

struct data {
    struct token_file *files; /* one per source; val_path's is the last */
    size_t n_files;
    struct token_stream train, val;
    size_t seq, batch;
    uint64_t seed;
    struct data_info info;
};

/* ---- from text to a cache file ---- */

enum { TOGETHER = 16 << 20 };

/* Collects parts of documents until there are enough for all cores. */
struct feed {
    const struct tokenizer *t;
    const char *path;
    struct str text;
    struct tokenizer_piece *pieces; /* text is set at the end: the memory moves */
    size_t n, cap;
    struct token_list ids;
    struct token_writer *writer;
};

static void feed_release(struct feed *f)
{
    str_release(&f->text);
    free(f->pieces);
    token_list_release(&f->ids);
}

static int feed_flush(struct feed *f, struct cairn_error *err)
{
    size_t at = 0;
    for (size_t i = 0; i < f->n; i++) {
        f->pieces[i].text = f->text.s + at;
        at += f->pieces[i].n;
    }
    if (f->n && tokenizer_encode_pieces(f->t, f->pieces, f->n, &f->ids, err))
        return cairn_wrap(err, "%s", f->path);
    if (token_writer_put(f->writer, f->ids.ids, f->ids.n, err))
        return -1;
    f->text.len = f->n = f->ids.n = 0;
    return 0;
}

static int feed_add(void *context, const struct text_source_part *part, struct cairn_error *err)
{
    struct feed *f = context;
    if (f->n == f->cap) {
        size_t cap = f->cap ? 2 * f->cap : 64;
        void *more = realloc(f->pieces, cap * sizeof(*f->pieces));
        if (!more)
            return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu documents", f->path, cap);
        f->pieces = more;
        f->cap = cap;
    }
    f->pieces[f->n++] = (struct tokenizer_piece){ NULL, part->n, part->begins, part->ends };
    str_addn(&f->text, part->text, part->n);
    return f->text.len >= TOGETHER ? feed_flush(f, err) : 0;
}

static int make_cache(struct text_source *s, const struct data_options *o, const struct tokenizer *t,
                      const struct own_dir *d, const char *name, const uint64_t content[2],
                      const uint64_t key[2], struct token_file *out, struct cairn_error *err)
{
    CLEANUP(token_writer_close) struct token_writer w = { .out = FILE_OUT_NONE };
    CLEANUP(feed_release) struct feed f = { .t = t, .path = s->path, .writer = &w };
    struct progress p;
    uint64_t now[2];
    if (token_writer_open(&w, d, name, tokenizer_vocab(t), err))
        return cairn_hint(err, "cairn caches tokens there; XDG_CACHE_HOME=DIR names another folder");
    progress_start(&p, o->talk, "tokenize", s->bytes);
    int r = text_source_read(s, o->text_key ? o->text_key : "text", feed_add, &f, now, &p, err);
    progress_end(&p);
    if (r || feed_flush(&f, err))
        return -1;
    if (memcmp(now, content, sizeof(now)))
        return cairn_fail(err, CAIRN_EIO, "%s changed while cairn read it", s->path);
    if (!w.n)
        return cairn_fail(err, CAIRN_EFORMAT, "%s contains no text (%zu files skipped)", s->path, s->skipped);
    return token_writer_commit(&w, key, s->skipped, out, err);
}

/* Key of the cache: everything the tokens depend on, i.e. content, how it is read, tokenizer. */
static void make_key(const struct text_source *s, const struct data_options *o, const struct tokenizer *t,
                     const uint64_t content[2], uint64_t key[2])
{
    struct hash h;
    hash_init(&h);
    hash_add(&h, content, 16);
    hash_add(&h, tokenizer_hash(t), 16);
    bool jsonl = s->folder;
    for (size_t i = 0; i < s->n_files; i++)
        jsonl = jsonl || s->files[i].jsonl;
    hash_add_text(&h, jsonl ? o->text_key ? o->text_key : "text" : "");
    hash_add_u64(&h, s->folder);
    hash_end(&h, key);
}

/* Without a cache folder the tokens exist for this process only. */
static void open_cache(const struct data_options *o, struct own_dir *d)
{
    struct cairn_error none;
    if (o->cache_dir)
        own_dir_open(d, PLACE_CACHE, o->cache_dir, NULL, true, &none);
    else
        own_cache_open(d, "tokens", &none);
}

static int open_text(const char *path, const struct data_options *o, const struct tokenizer *t,
                     struct token_file *out, struct data_info *info, struct cairn_error *err)
{
    CLEANUP(text_source_close) struct text_source s;
    CLEANUP(own_dir_close) struct own_dir cache = OWN_DIR_NONE;
    struct progress p;
    uint64_t content[2], key[2];
    char name[48];
    if (text_source_open(&s, path, err))
        return -1;
    s.stop = o->stop;
    progress_start(&p, o->talk, "read", s.bytes);
    int r = text_source_hash(&s, content, &p, err);
    progress_end(&p);
    if (r)
        return -1;
    make_key(&s, o, t, content, key);
    info->hash = splitmix_mix(info->hash ^ key[0]);
    hash_text(key, name);
    strcat(name, ".tokens");
    open_cache(o, &cache);
    if (!token_cache_open(out, &cache, name, key))
        return 0;
    if (make_cache(&s, o, t, &cache, name, content, key, out, err))
        return -1;
    info->made++;
    return 0;
}

static int open_source(struct data *d, const char *path, const struct data_options *o,
                       const struct tokenizer *t, struct cairn_error *err)
{
    struct token_file *f = &d->files[d->n_files];
    if (str_ends(path, ".bin") ? token_bin_open(f, path, tokenizer_vocab(t), err)
                               : open_text(path, o, t, f, &d->info, err))
        return -1;
    d->info.hash = splitmix_mix(d->info.hash ^ f->n);
    d->n_files++;
    d->info.skipped += f->skipped;
    return 0;
}

/* ---- token streams ---- */

static void stream_add(struct token_stream *r, const struct token_file *f, uint64_t from, uint64_t n)
{
    if (n)
        r->segments[r->n_segments++] = (struct segment){ f, from, r->n, n };
    r->n += n;
}

/* Tokens at the end of a source that are held out for validation. */
static uint64_t val_share(const struct data_options *o, uint64_t n)
{
    uint64_t window = o->seq + 1, val = (uint64_t)((double)n * o->val_split);
    if (o->val_split <= 0 || n < 2 * window)
        return 0;
    return val < window ? window : val > n - window ? n - window : val;
}

static void fill_streams(struct data *d, const struct data_options *o, bool own_val)
{
    size_t sources = d->n_files - own_val;
    for (size_t i = 0; i < sources; i++) {
        uint64_t n = d->files[i].n, val = own_val ? 0 : val_share(o, n);
        stream_add(&d->train, &d->files[i], 0, n - val);
        stream_add(&d->val, &d->files[i], n - val, val);
    }
    if (own_val)
        stream_add(&d->val, &d->files[sources], 0, d->files[sources].n);
    d->train.windows = d->train.n ? (d->train.n - 1) / o->seq : 0;
    d->val.windows = d->val.n ? (d->val.n - 1) / o->seq : 0;
}

static int too_short(const struct token_stream *r, const char *what, size_t seq, struct cairn_error *err)
{
    cairn_fail(err, CAIRN_EFORMAT,
               "%s: %llu tokens are too few for one sequence of %zu tokens and the token after it", what,
               (unsigned long long)r->n, seq);
    return r->n > 1 ? cairn_hint(err, "use more text, or a train.seq of at most %llu",
                                 (unsigned long long)(r->n - 1))
                    : -1;
}

static int stream_copy(const struct token_stream *r, uint64_t at, size_t n, int32_t *out,
                       struct cairn_error *err)
{
    size_t low = 0, high = r->n_segments;
    while (high - low > 1) {
        size_t mid = (low + high) / 2;
        if (r->segments[mid].at <= at)
            low = mid;
        else
            high = mid;
    }
    for (; n; low++) {
        const struct segment *s = &r->segments[low];
        uint64_t skip = at - s->at;
        size_t take = s->n - skip < n ? (size_t)(s->n - skip) : n;
        if (token_file_copy(s->file, s->from + skip, take, out, err))
            return -1;
        out += take;
        at += take;
        n -= take;
    }
    return 0;
}

/* ---- opening and closing ---- */

void data_close(struct data *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->n_files; i++)
        token_file_close(&d->files[i]);
    free(d->files);
    free(d->train.segments);
    free(d->val.segments);
    free(d);
}

void data_cleanup(struct data **d)
{
    data_close(*d);
}

static struct data *data_new(const struct data_options *o)
{
    struct data *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->files = calloc(o->n_paths + 1, sizeof(*d->files));
    d->train.segments = calloc(o->n_paths + 1, sizeof(*d->train.segments));
    d->val.segments = calloc(o->n_paths + 1, sizeof(*d->val.segments));
    d->seq = o->seq;
    d->batch = o->batch;
    d->seed = o->seed;
    if (d->files && d->train.segments && d->val.segments)
        return d;
    data_close(d);
    return NULL;
}

static int check_options(const struct data_options *o, struct cairn_error *err)
{
    if (!o->n_paths)
        return cairn_fail(err, CAIRN_EUSAGE, "no training data: data.path is empty");
    if (!o->seq || !o->batch)
        return cairn_fail(err, CAIRN_EUSAGE, "sequences of %zu tokens, %zu per step: both must be at least 1",
                          o->seq, o->batch);
    if (!(o->val_split >= 0 && o->val_split < 1))
        return cairn_fail(err, CAIRN_EUSAGE, "data.val_split is %g; it must be at least 0 and below 1",
                          o->val_split);
    return 0;
}

int data_open(const struct data_options *o, const struct tokenizer *t, struct data **out,
              struct cairn_error *err)
{
    bool own_val = o->val_path && *o->val_path;
    if (check_options(o, err))
        return -1;
    CLEANUP(data_cleanup) struct data *d = data_new(o);
    if (!d)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu sources", o->n_paths);
    for (size_t i = 0; i < o->n_paths; i++)
        if (open_source(d, o->paths[i], o, t, err))
            return -1;
    if (own_val && open_source(d, o->val_path, o, t, err))
        return -1;
    fill_streams(d, o, own_val);
    if (!d->train.windows)
        return too_short(&d->train, o->n_paths > 1 ? "all sources together" : o->paths[0], o->seq, err);
    if (own_val && !d->val.windows)
        return too_short(&d->val, o->val_path, o->seq, err);
    *out = TAKE(d);
    return 0;
}

void data_info_get(const struct data *d, struct data_info *out)
{
    *out = d->info;
    out->tokens = d->train.n;
    out->windows = d->train.windows;
    out->val_tokens = d->val.n;
    out->val_windows = d->val.windows;
}

/* Reads window w as ids and targets. */
static int copy_window(const struct token_stream *r, uint64_t w, size_t seq, int32_t *ids, int32_t *targets,
                       struct cairn_error *err)
{
    if (stream_copy(r, w * seq, seq, ids, err))
        return -1;
    memcpy(targets, ids + 1, (seq - 1) * sizeof(*ids));
    return stream_copy(r, w * seq + seq, 1, targets + seq - 1, err);
}

int data_batch(const struct data *d, uint64_t step, size_t micro, size_t n, int32_t *ids, int32_t *targets,
               struct cairn_error *err)
{
    uint64_t first = step * d->batch + micro * n;
    int r = 0;
    for (size_t i = 0; i < n && !r; i++) {
        uint64_t epoch = (first + i) / d->train.windows, place = (first + i) % d->train.windows;
        uint64_t w = shuffle(place, d->train.windows, shuffle_key(d->seed, epoch));
        r = copy_window(&d->train, w, d->seq, ids + i * d->seq, targets + i * d->seq, err);
    }
    return r;
}

int data_val_batch(const struct data *d, uint64_t batch, size_t n, int32_t *ids, int32_t *targets,
                   struct cairn_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && !r; i++) {
        uint64_t place = (batch * n + i) % d->val.windows;
        uint64_t w = shuffle(place, d->val.windows, shuffle_key(0, 0));
        r = copy_window(&d->val, w, d->seq, ids + i * d->seq, targets + i * d->seq, err);
    }
    return r;
}

/* ---- training a tokenizer ---- */

static int count_words(void *context, const struct text_source_part *part, struct cairn_error *err)
{
    return word_counts_add(context, part->text, part->n, err);
}

static int count_source(const char *path, const struct data_options *o, struct word_counts *w,
                        struct cairn_error *err)
{
    CLEANUP(text_source_close) struct text_source s = { 0 };
    struct progress p;
    uint64_t hash[2];
    if (str_ends(path, ".bin"))
        return cairn_fail(err, CAIRN_EUSAGE,
                          "%s contains tokens, not text: set data.tokenizer to the tokenizer that made it",
                          path);
    if (text_source_open(&s, path, err))
        return -1;
    s.stop = o->stop;
    progress_start(&p, o->talk, "counting words", s.bytes);
    int r = text_source_read(&s, o->text_key ? o->text_key : "text", count_words, w, hash, &p, err);
    progress_end(&p);
    return r;
}

int data_train_tokenizer(const struct data_options *o, uint32_t vocab, struct tokenizer **out,
                         struct cairn_error *err)
{
    CLEANUP(word_counts_cleanup) struct word_counts *w = word_counts_new();
    for (size_t i = 0; i < o->n_paths; i++)
        if (count_source(o->paths[i], o, w, err))
            return -1;
    return tokenizer_train(w, vocab, o->stop, out, err);
}
