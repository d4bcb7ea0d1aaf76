/* SPDX-License-Identifier: Apache-2.0 */
#include "train/config.h"

#include "train/task_gpt.h"
#include "base/yaml.h"
#include "check.h"
#include <dirent.h>

static struct arena arena;
static struct cairn_error err;

static int read_into(struct job_config *c, const char *text)
{
    err = (struct cairn_error){ 0 };
    config_init(c, &arena);
    return config_read_text(c, "job.yaml", text, strlen(text), &err);
}

/* What a file or its keys together are refused with; "" if they are not. */
static const char *refused(const char *text)
{
    struct job_config c;
    if (!read_into(&c, text) && !config_check(&c, &err))
        config_fill(&c, &err);
    return err.msg;
}

/* The same for a file that is complete but for these lines. */
static const char *refused_in(const char *lines)
{
    return refused(arena_printf(&arena, "%s\ndata:\n  path: x\n", lines));
}

static const char *refused_option(const char *pair)
{
    struct job_config c;
    err = (struct cairn_error){ 0 };
    config_init(&c, &arena);
    config_set_pair(&c, pair, &err);
    return err.msg;
}

static char *written(const struct job_config *c)
{
    struct str s = { 0 };
    config_write(c, &s);
    char *text = arena_strdup(c->arena, s.s);
    str_release(&s);
    return text;
}

static void defaults_are_those_of_the_table(void)
{
    struct job_config c;
    config_init(&c, &arena);
    CHECK_INT(gpt_keys(&c)->model.layers, 6);
    CHECK_INT(gpt_keys(&c)->model.width, 384);
    CHECK(gpt_keys(&c)->model.norm_eps == 1e-5 && c.train.lr == 3e-4 && c.train.beta2 == 0.95);
    CHECK(gpt_keys(&c)->model.bias && gpt_keys(&c)->model.tied && !c.train.allow_cpu && c.checkpoint.async);
    CHECK_INT(c.train.schedule, CONFIG_SCHEDULE_COSINE);
    CHECK_INT(c.train.steps, 1000);
    CHECK_STR(gpt_keys(&c)->data.text_key, "text");
    CHECK_STR(c.model.path, "");
    CHECK_INT(gpt_keys(&c)->data.path.n, 0);
    REQUIRE(gpt_keys(&c)->sample.prompts.n == 1);
    CHECK_STR(gpt_keys(&c)->sample.prompts.item[0], "\n");
    for (size_t i = 0; i < n_config_keys; i++)
        CHECK(!config_is_set(&c, config_keys[i].name));
}

/* Rows in the order of their sections, no two alike, no two at one place. */
static void the_table_is_whole(void)
{
    size_t section = 0;
    for (size_t i = 0; i < n_config_keys; i++) {
        const struct config_key *k = &config_keys[i];
        size_t n = strcspn(k->name, ".");
        while (section < n_config_sections && (strncmp(config_sections[section].name, k->name, n) ||
                                               strlen(config_sections[section].name) != n))
            section++;
        REQUIRE(section < n_config_sections);
        CHECK(k->name[n] == '.' && k->about && *k->about && k->preset);
        CHECK((k->type == CONFIG_WORD || k->type == CONFIG_COUNT) == (k->words != NULL));
        if (k->type == CONFIG_INT || k->type == CONFIG_REAL)
            CHECK(k->least < k->most);
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(config_keys[j].name, k->name) && config_keys[j].at != k->at);
    }
}

static void a_file_is_read(void)
{
    struct job_config c;
    CHECK_INT(read_into(&c, "model:\n  layers: 2\n  norm: rms\n  bias: no\n  path: w # no\n"
                            "data:\n  path: [a, 'b c']\n  val_path:\n"
                            "train: {lr: 1e-4, weight_decay: .5, seed: 9007199254740992, dtype: \"bf16\"}\n"
                            "lora:\nsample:\n  prompts: Once\n"),
              0);
    CHECK_STR(err.msg, "");
    CHECK_INT(gpt_keys(&c)->model.layers, 2);
    CHECK_INT(gpt_keys(&c)->model.norm, GPT_NORM_RMS);
    CHECK(!gpt_keys(&c)->model.bias);
    CHECK_STR(c.model.path, "w");
    REQUIRE(gpt_keys(&c)->data.path.n == 2 && gpt_keys(&c)->sample.prompts.n == 1);
    CHECK_STR(gpt_keys(&c)->data.path.item[1], "b c");
    CHECK_STR(gpt_keys(&c)->data.val_path, "");
    CHECK_STR(gpt_keys(&c)->sample.prompts.item[0], "Once");
    CHECK(c.train.lr == 1e-4 && c.train.weight_decay == 0.5);
    CHECK_INT(c.train.seed, 9007199254740992);
    CHECK_INT(c.train.dtype, CONFIG_DTYPE_BF16);
    CHECK_INT(gpt_keys(&c)->model.heads, 6);
    CHECK_STR(config_place(&c, "model.norm"), "job.yaml:3:9");
    CHECK(config_is_set(&c, "train.lr") && !config_is_set(&c, "train.steps"));
}

static void an_empty_file_has_the_defaults(void)
{
    struct job_config c, plain;
    config_init(&plain, &arena);
    CHECK_INT(read_into(&c, "# nothing\n"), 0);
    CHECK_STR(written(&c), written(&plain));
}

static void unknown_keys_get_the_nearest(void)
{
    CHECK_STR(refused("train:\n  stepz: 5\n"),
              "job.yaml:2:3: unknown key train.stepz; did you mean train.steps?");
    CHECK_STR(refused("trian:\n  steps: 5\n"), "job.yaml:1:1: unknown key trian; did you mean train?");
    CHECK_STR(refused("train:\n  context: 5\n"),
              "job.yaml:2:3: unknown key train.context; did you mean model.context?");
    CHECK_STR(refused("steps: 5\n"), "job.yaml:1:1: unknown key steps; did you mean train.steps?");
    CHECK_STR(refused("train.steps: 5\n"), "job.yaml:1:1: unknown key train.steps; write steps below train");
    CHECK_STR(refused("train:\n  frobnicate: 5\n"), "job.yaml:2:3: unknown key train.frobnicate");
    CHECK_STR(err.hint, "cairn help config gpt lists the keys");
    CHECK_STR(refused("'a\\x1bb': 5\n"), "job.yaml:1:1: unknown key a\\x1bb");
    CHECK_STR(refused("\"a\\x1bb\": 5\n"), "job.yaml:1:1: unknown key a?b");
}

static void wrong_values_say_what_is_allowed(void)
{
    CHECK_STR(refused("train:\n  steps: 0\n"),
              "job.yaml:2:10: train.steps is 0; it must be a whole number, at "
              "least 1, at most 1000000000");
    CHECK_STR(refused("train:\n  lr: fast\n"),
              "job.yaml:2:7: train.lr is fast; it must be a number, above 0, at most 100");
    CHECK_STR(refused("model:\n  dropout: 1\n"),
              "job.yaml:2:12: model.dropout is 1; it must be a number, at least 0, below 1");
    CHECK_STR(refused("train:\n  schedule: cosin\n"),
              "job.yaml:2:13: train.schedule is cosin; it must be cosine, "
              "linear, constant, restarts, polynomial or rex; did you mean cosine?");
    CHECK_STR(refused("model:\n  bias: maybe\n"),
              "job.yaml:2:9: model.bias is maybe; it must be true or false");
    CHECK_STR(refused("model:\n  bias: 'true'\n"),
              "job.yaml:2:9: model.bias is \"true\"; it must be true or false");
    CHECK_HAS(refused("model:\n  path: [a]\n"), "job.yaml:2:9: model.path is a list");
    CHECK_HAS(refused("data:\n  path: {a: b}\n"), "job.yaml:2:9: data.path is a map");
    CHECK_HAS(refused("data:\n  path: [a, [b]]\n"), "job.yaml:2:13: data.path is a list");
    CHECK_HAS(refused("data:\n  path:\n  - a\n  -\n"), "job.yaml:4:4: data.path is empty");
    CHECK_HAS(refused("train:\n  steps:\n"), "job.yaml:2:9: train.steps is empty; it must be a whole number");
    CHECK_STR(refused("train: 5\n"), "job.yaml:1:8: train is 5; it must have keys below it");
    CHECK_STR(refused("- a\n"), "job.yaml:1:1: the file is a list; it must have keys below it");
}

/* A number in a form that other programs read otherwise, or not at all. */
static void odd_numbers_are_explained(void)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "3_000",
          "is 3_000; it must be a whole number, at least 1, at most 1000000000 (write it without _)" },
        { "10k", "(write all digits of the number)" },
        { "1M", "(write all digits of the number)" },
        { "'10'", "is \"10\"; it must be" },
        { "'10'", "quotes" },
        { "010", "(a 0 in front would make it octal)" },
        { "0x10", "is 0x10; it must be a whole number" },
        { "1e3", "is 1e3; it must be a whole number" },
        { "1.0", "is 1.0; it must be a whole number" },
        { "+1", "is +1; it must be a whole number" },
        { "-1", "is -1; it must be a whole number" },
        { "1000000001", "at most 1000000000" },
        { "99999999999999999999", "is 99999999999999999999; it must be" },
        { "1:30", "is 1:30; it must be" },
        { "true", "is true; it must be" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_HAS(refused(arena_printf(&arena, "train:\n  steps: %s\n", cases[i].text)), cases[i].says);
    static const char *const not_real[] = { "1_0.0", "nan",   ".nan", ".inf", "1e999", "1e",    "1e+", ".",
                                            "--1",   "0x1p3", "1,5",  "00.5", "-0.1",  "1e-4x", "1 2", "1k" };
    for (size_t i = 0; i < ARRAY_LEN(not_real); i++)
        CHECK_HAS(refused(arena_printf(&arena, "train:\n  lr: %s\n", not_real[i])),
                  arena_printf(&arena, "job.yaml:2:7: train.lr is %s; it must be a number", not_real[i]));
}

static void a_count_may_be_a_word(void)
{
    struct job_config c;
    CHECK_INT(read_into(&c, "memory:\n  blocks: host\n"), 0);
    CHECK_INT(c.memory.blocks.word, CONFIG_PLACE_HOST);
    CHECK_INT(read_into(&c, "memory:\n  blocks: 17\n"), 0);
    CHECK(c.memory.blocks.word < 0 && c.memory.blocks.n == 17);
    CHECK_HAS(written(&c), "blocks: 17 ");
    CHECK_INT(config_set_pair(&c, "memory.blocks=auto", &err), 0);
    CHECK_INT(c.memory.blocks.word, CONFIG_PLACE_AUTO);
    static const char *const bad[] = { "-1", "1.5", "100001", "'4'", "all", "[4]", "" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_HAS(refused(arena_printf(&arena, "memory:\n  blocks: %s\n", bad[i])), "memory.blocks is ");
    CHECK_HAS(refused("memory:\n  blocks: hots\n"), "did you mean host?");
}

static void numbers_mean_what_they_say(void)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = { { "1e-4", 1e-4 }, { "1E-4", 1e-4 }, { "1.5e+1", 15 }, { "+.5", 0.5 },
                  { "1.", 1 },      { "0.25", 0.25 }, { "2", 2 },       { "1e-300", 1e-300 } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job_config c;
        CHECK_INT(read_into(&c, arena_printf(&arena, "train:\n  lr: %s\n", cases[i].text)), 0);
        CHECK(c.train.lr == cases[i].value);
    }
    static const char *const words[] = { "true",  "True", "TRUE", "yes", "on",
                                         "false", "no",   "No",   "off", "OFF" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        struct job_config c;
        CHECK_INT(read_into(&c, arena_printf(&arena, "model:\n  bias: %s\n", words[i])), 0);
        CHECK_INT(gpt_keys(&c)->model.bias, i < 5);
    }
}

static void keys_that_clash_are_refused(void)
{
    CHECK_HAS(refused("model:\n  heads: 6\n"), "job.yaml: data.path is missing");
    CHECK_STR(refused("data:\n  path: ''\n"),
              "job.yaml:2:9: data.path is \"\"; it must name a file or folder");
    CHECK_STR(refused_in("model:\n  heads: 5\n"),
              "job.yaml:2:10: model.heads is 5, which does not divide model.width, 384");
    CHECK_STR(refused_in("model:\n  width: 100\n"),
              "job.yaml:2:10: model.heads is 6, which does not divide model.width, 100");
    CHECK_STR(refused_in("model:\n  kv_heads: 4\n"),
              "job.yaml:2:13: model.kv_heads is 4, which does not divide model.heads, 6");
    CHECK_STR(refused_in("model:\n  kv_heads: 12\n"),
              "job.yaml:2:13: model.kv_heads is 12, which does not divide model.heads, 6");
    CHECK_HAS(refused_in("model:\n  width: 30\n  position: rope\n"), "job.yaml:3:13: model.position is rope");
    CHECK_STR(refused_in("train:\n  seq: 257\n"),
              "job.yaml:2:8: train.seq is 257, more than model.context, 256");
    CHECK_STR(refused_in("train:\n  steps: 10\n  warmup: 11\n"),
              "job.yaml:3:11: train.warmup is 11, more than train.steps, 10");
    CHECK_HAS(refused_in("model:\n  quantize: int8\n"),
              "job.yaml:2:13: model.quantize is int8, but quantized weights cannot be trained");
    CHECK_HAS(refused_in("train:\n  dtype: f32\n  master: stochastic\n"), "job.yaml:3:11: train.master");
    CHECK_HAS(refused_in("train:\n  patience: 3\neval:\n  every: 0\n"), "job.yaml:2:13: train.patience is 3");
    CHECK_HAS(refused("train:\n  patience: 3\ndata:\n  path: x\n  val_split: 0\n"),
              "job.yaml:2:13: train.patience is 3");
    CHECK_HAS(refused_in("sample:\n  every: 5\n  prompts: []\n"), "job.yaml:3:12: sample.prompts is empty");
    CHECK_HAS(refused_in("model:\n  vocab: 255\n"),
              "job.yaml:2:10: model.vocab is 255, but the tokenizer bytes");
    CHECK_HAS(refused("model: {vocab: 300}\ndata: {path: x, tokenizer: bpe}\n"), "bpe has 4096 tokens");
    static const char *const devices[] = { "gpu", "hip", "hip:", "hip:x", "cuda:-1", "cpu:0", "" };
    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        CHECK_HAS(refused_in(arena_printf(&arena, "train:\n  device: '%s'\n", devices[i])),
                  "it must be auto, cpu, hip:N or cuda:N");
}

static void keys_that_go_together_are_taken(void)
{
    static const char *const texts[] = {
        "lora:\n  rank: 8\n",
        "lora:\n  rank: 8\nmodel:\n  quantize: fp8\n",
        "lora:\n  alpha: 8\n",  /* off, but written */
        "train:\n  steps: 5\n", /* the default warm-up is longer */
        "train:\n  warmup: 1000\n",
        "train:\n  device: hip:1\n",
        "train:\n  device: cpu\n",
        "model:\n  vocab: 256\n",
        "model:\n  position: rope\n  kv_heads: 3\n",
        "train:\n  seq: 256\n  patience: 2\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        CHECK_STR(refused_in(texts[i]), "");
}

static void zeros_are_worked_out(void)
{
    struct job_config c;
    CHECK_INT(read_into(&c, "train:\n  steps: 60\nlora:\n  rank: 4\ndata:\n  path: x\n"), 0);
    CHECK_INT(config_fill(&c, &err), 0);
    CHECK_INT(gpt_keys(&c)->model.kv_heads, 6);
    CHECK_INT(gpt_keys(&c)->model.ffn, 4 * 384);
    CHECK_INT(gpt_keys(&c)->train.seq, 256);
    CHECK_INT(c.train.warmup, 6);
    CHECK(c.lora.alpha == 4);
    CHECK_INT(gpt_keys(&c)->model.vocab, 0); /* the tokenizer's, which is not known here */
    CHECK_INT(read_into(&c, "model: {mlp: swiglu, width: 768}\n"), 0);
    CHECK_INT(config_fill(&c, &err), 0);
    CHECK_INT(gpt_keys(&c)->model.ffn, 2048);
    CHECK_INT(c.train.warmup, 100);
    CHECK_INT(read_into(&c, "model: {mlp: swiglu, width: 390, ffn: 7, kv_heads: 2}\n"
                            "train: {warmup: 50, steps: 60, seq: 9}\nlora: {rank: 2, alpha: 3}"),
              0);
    CHECK_INT(config_fill(&c, &err), 0);
    CHECK_INT(gpt_keys(&c)->model.ffn, 7);
    CHECK_INT(gpt_keys(&c)->model.kv_heads, 2);
    CHECK_INT(c.train.warmup, 50);
    CHECK_INT(gpt_keys(&c)->train.seq, 9);
    CHECK(c.lora.alpha == 3);
    CHECK_INT(read_into(&c, "model: {mlp: swiglu, width: 390}\n"), 0);
    CHECK_INT(config_fill(&c, &err), 0);
    CHECK_INT(gpt_keys(&c)->model.ffn, 1088); /* 1040, up */
}

static void options_come_last(void)
{
    struct job_config c;
    CHECK_INT(read_into(&c, "train:\n  lr: 1\n  steps: 7\n"), 0);
    CHECK_INT(config_set_pair(&c, "train.lr=1e-4", &err), 0);
    CHECK_INT(config_set(&c, "--steps 60", "train.steps", "60", &err), 0);
    CHECK_INT(config_set_pair(&c, "data.path=a, b", &err), 0);
    CHECK_INT(config_set_pair(&c, "sample.prompts=[a, \"b=c\"]", &err), 0);
    CHECK_INT(config_set_pair(&c, "run.name=null: # x", &err), 0);
    CHECK_INT(config_set_pair(&c, "run.dir=", &err), 0);
    CHECK(c.train.lr == 1e-4);
    CHECK_INT(c.train.steps, 60);
    CHECK_STR(config_place(&c, "train.steps"), "--steps 60");
    CHECK_STR(config_place(&c, "train.lr"), "--set train.lr=1e-4");
    REQUIRE(gpt_keys(&c)->data.path.n == 1 && gpt_keys(&c)->sample.prompts.n == 2);
    CHECK_STR(gpt_keys(&c)->data.path.item[0], "a, b");
    CHECK_STR(gpt_keys(&c)->sample.prompts.item[1], "b=c");
    CHECK_STR(c.run.name, "null: # x");
    CHECK_STR(c.run.dir, "");
}

static void wrong_options_are_named(void)
{
    CHECK_STR(refused_option("train.stepz=5"),
              "--set train.stepz=5: unknown key train.stepz; did you mean train.steps?");
    CHECK_STR(refused_option("trian.steps=5"),
              "--set trian.steps=5: unknown key trian.steps; did you mean train.steps?");
    CHECK_HAS(refused_option("train=5"), "--set train=5: unknown key train; it is a section");
    CHECK_STR(refused_option("train.steps"), "--set train.steps: it must be KEY=VALUE");
    CHECK_HAS(refused_option("train.steps=10k"), "--set train.steps=10k: train.steps is 10k; it must be");
    CHECK_HAS(refused_option("train.steps="), "train.steps is empty; it must be a whole number");
    CHECK_HAS(refused_option("data.path=[a"), "--set data.path=[a: data.path is \"[a\"");
    CHECK_HAS(refused_option("data.path=[a, [b]]"),
              "--set data.path=[a, [b]]: data.path is a list; it must be");
    CHECK_HAS(refused_option("run.name=\xff"), "--set run.name=?: run.name is not UTF-8");
}

/* An option that contradicts the file is blamed, with what it contradicts. */
static void a_clash_names_the_option(void)
{
    struct job_config c;
    CHECK_INT(read_into(&c, "data:\n  path: x\n"), 0);
    CHECK_INT(config_set_pair(&c, "model.heads=7", &err), 0);
    CHECK_INT(config_fill(&c, &err), -1);
    CHECK_STR(err.msg, "--set model.heads=7: model.heads is 7, which does not divide model.width, 384");
}

static void a_failed_option_changes_nothing(void)
{
    struct job_config c;
    config_init(&c, &arena);
    for (size_t i = 0; i < n_config_keys; i++) {
        if (config_keys[i].type == CONFIG_TEXT)
            continue;
        const char *before = written(&c);
        CHECK_INT(config_set(&c, "-x", config_keys[i].name, "[[no]]", &err), -1);
        CHECK(!config_is_set(&c, config_keys[i].name));
        CHECK_STR(written(&c), before);
    }
}

/* Each key in turn gets another value, is written, and read again. */
static void what_is_written_reads_back(void)
{
    struct job_config c, again;
    config_init(&c, &arena);
    for (size_t i = 0; i < n_config_keys; i++) {
        const struct config_key *k = &config_keys[i];
        const char *value = !strcmp(k->name, "model.kind") ? "gpt" /* another one has other defaults */
                            : k->type == CONFIG_INT        ? arena_printf(&arena, "%.0f", k->most)
                            : k->type == CONFIG_REAL       ? "0.12345678901234567"
                            : k->type == CONFIG_BOOL       ? (strcmp(k->preset, "true") ? "true" : "false")
                            : k->words                     ? k->words[k->words[1] ? 1 : 0]
                            : k->type == CONFIG_TEXT       ? "a \"b\" \\ # : \n ä"
                                                           : "['', \"x\\ty\", \"[z]\"]";
        const char *before = written(&c);
        CHECK_INT(config_set(&c, "-x", k->name, value, &err), 0);
        const char *text = written(&c);
        if (!strcmp(text, before) && strcmp(k->name, "model.kind"))
            CHECK_FAIL_("%s", k->name);
        CHECK_INT(read_into(&again, text), 0);
        CHECK_STR(err.msg, "");
        CHECK_STR(written(&again), text);
    }
    for (size_t i = 0; i < n_config_keys; i++)
        CHECK(config_is_set(&again, config_keys[i].name));
    CHECK(again.train.lr == 0.12345678901234567);
    CHECK_STR(again.run.name, c.run.name);
    CHECK_STR(again.lora.targets.item[1], "x\ty");
}

static void reals_are_short_and_numbers_to_others(void)
{
    static const struct {
        const char *given, *written;
    } cases[] = { { "3e-4", "lr: 0.0003 " },    { "1e-05", "lr: 1.0e-05 " }, { "1.5e-7", "lr: 1.5e-07 " },
                  { "100", "lr: 100 " },        { "0.1", "lr: 0.1 " },       { "20", "lr: 20 " },
                  { "1e-300", "lr: 1.0e-300 " } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job_config c;
        config_init(&c, &arena);
        CHECK_INT(config_set(&c, "-x", "train.lr", cases[i].given, &err), 0);
        CHECK_HAS(written(&c), cases[i].written);
    }
}

static void limits_are_the_tables(void)
{
    for (size_t i = 0; i < n_config_keys; i++) {
        const struct config_key *k = &config_keys[i];
        if (k->type != CONFIG_INT && k->type != CONFIG_REAL)
            continue;
        struct job_config c;
        config_init(&c, &arena);
        const char *least = arena_printf(&arena, "%.17g", k->least);
        const char *most = k->type == CONFIG_INT ? arena_printf(&arena, "%.0f", k->most)
                                                 : arena_printf(&arena, "%.17g", k->most);
        CHECK_INT(config_set(&c, "-x", k->name, least, &err), k->above ? -1 : 0);
        CHECK_INT(config_set(&c, "-x", k->name, most, &err), k->below ? -1 : 0);
        CHECK_INT(config_set(&c, "-x", k->name, arena_printf(&arena, "-%s1", least), &err), -1);
    }
}

/* The jobs that come with the program. */
static void the_examples_are_right(void)
{
    const char *folder = getenv("CAIRN_CONFIGS");
    DIR *d = opendir(folder ? folder : "configs");
    int seen = 0;
    REQUIRE(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (!str_ends(e->d_name, ".yaml"))
            continue;
        struct job_config c;
        err = (struct cairn_error){ 0 };
        config_init(&c, &arena);
        config_read(&c, arena_printf(&arena, "%s/%s", folder ? folder : "configs", e->d_name), &err);
        if (!err.msg[0] && !config_check(&c, &err))
            config_fill(&c, &err);
        CHECK_STR(err.msg, "");
        seen++;
    }
    closedir(d);
    CHECK(seen >= 3);
}

int main(void)
{
    RUN(defaults_are_those_of_the_table);
    RUN(the_table_is_whole);
    RUN(a_file_is_read);
    RUN(an_empty_file_has_the_defaults);
    RUN(unknown_keys_get_the_nearest);
    RUN(wrong_values_say_what_is_allowed);
    RUN(odd_numbers_are_explained);
    RUN(a_count_may_be_a_word);
    RUN(numbers_mean_what_they_say);
    RUN(keys_that_clash_are_refused);
    RUN(keys_that_go_together_are_taken);
    RUN(zeros_are_worked_out);
    RUN(options_come_last);
    RUN(wrong_options_are_named);
    RUN(a_clash_names_the_option);
    RUN(a_failed_option_changes_nothing);
    RUN(what_is_written_reads_back);
    RUN(reals_are_short_and_numbers_to_others);
    RUN(limits_are_the_tables);
    RUN(the_examples_are_right);
    arena_release(&arena);
    return check_done();
}
