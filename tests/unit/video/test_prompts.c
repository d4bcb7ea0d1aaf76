/* SPDX-License-Identifier: Apache-2.0 */
#include "video/prompts.h"

#include "check.h"
#include "tree.h"
#include <stdio.h>
#include <string.h>

static struct tree dir;
static struct cairn_error err;
static struct arena arena;

static void line_has_all_options(void)
{
    struct sample_prompt p;
    REQUIRE(
        !prompt_parse("a cat --w 256 --h 128 --f 33 --d 7 --s 20 --l 5.5 --fs 3 --n bad, worse --i x y.png "
                      "--fps 12 --lm 0.5 --g 4",
                      &arena, &p, &err));
    CHECK_STR(p.text, "a cat");
    CHECK_STR(p.negative, "bad, worse");
    CHECK_STR(p.image, "x y.png");
    CHECK_INT(p.width, 256);
    CHECK_INT(p.height, 128);
    CHECK_INT(p.frames, 33);
    CHECK_INT(p.seed, 7);
    CHECK_INT(p.steps, 20);
    CHECK(p.cfg == 5.5 && p.shift == 3 && p.fps == 12 && p.lora_scale == 0.5);
}

static void what_is_not_given_says_so(void)
{
    struct sample_prompt p;
    REQUIRE(!prompt_parse("  a cat  ", &arena, &p, &err));
    CHECK_STR(p.text, "a cat");
    CHECK(!p.negative && !p.image && !p.width && !p.height && !p.frames && !p.steps);
    CHECK(p.seed == -1 && p.cfg < 0 && p.shift == 0 && p.fps == 0 && p.lora_scale == 1);
    REQUIRE(!prompt_parse("--n ugly", &arena, &p, &err));
    CHECK_STR(p.text, "");
    CHECK_STR(p.negative, "ugly");
    REQUIRE(!prompt_parse("a --n ", &arena, &p, &err));
    CHECK_STR(p.negative, "");
}

static void dashes_may_be_text(void)
{
    struct sample_prompt p;
    REQUIRE(!prompt_parse("a well--known cat -- asleep --d 0", &arena, &p, &err));
    CHECK_STR(p.text, "a well--known cat -- asleep");
    CHECK_INT(p.seed, 0);
}

static void wrong_options_are_refused(void)
{
    static const char *const lines[] = { "a --w 0",  "a --w x",      "a --w 20000", "a --f 1.5",
                                         "a --d -1", "a --s 2000",   "a --l nan",   "a --fs -1",
                                         "a --zz 1", "a --cn b.mp4", "a --ei b",    "a --width 4",
                                         "a --w",    "\xff" };
    struct sample_prompt p;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (!prompt_parse(lines[i], &arena, &p, &err) || err.code != CAIRN_EUSAGE)
            CHECK_STR("accepted", lines[i]);
}

static size_t read_file(const char *name, const char *text, struct sample_prompt **p)
{
    size_t n = 0;
    err = (struct cairn_error){ 0 };
    tree_put(&dir, name, text);
    return prompts_read(tree_path(&dir, name), &arena, p, &n, &err) ? 0 : n;
}

static void text_file_has_one_a_line(void)
{
    struct sample_prompt *p;
    REQUIRE(read_file("a.txt", "\xef\xbb\xbf# comment\r\na cat --d 5\r\n\n  a dog\n", &p) == 2);
    CHECK_STR(p[0].text, "a cat");
    CHECK_INT(p[0].seed, 5);
    CHECK_STR(p[1].text, "a dog");
    CHECK(!read_file("b.txt", "a cat\n\na dog --w none\n", &p));
    CHECK_HAS(err.msg, "b.txt:3: ");
    CHECK(!read_file("c.txt", "# nothing\n", &p) && err.code == CAIRN_EUSAGE);
    CHECK(!read_file("c.doc", "a cat\n", &p) && err.code == CAIRN_EUSAGE);
}

static void toml_file_has_common_keys(void)
{
    struct sample_prompt *p;
    REQUIRE(read_file("a.toml",
                      "[prompt]\nwidth = 256\nseed = 1\nnegative_prompt = \"bad\"\n"
                      "[[prompt.subset]]\nprompt = \"a cat\"\ncfg_scale = 1.5\n"
                      "[[prompt.subset]]\nprompt = \"a dog\"\nseed = 9\nframe_count = 17\n",
                      &p) == 2);
    CHECK_STR(p[0].text, "a cat");
    CHECK(p[0].cfg == 1.5 && p[0].seed == 1 && p[0].width == 256);
    CHECK(p[1].seed == 9 && p[1].frames == 17 && p[1].width == 256);
    CHECK_STR(p[1].negative, "bad");
    CHECK(!read_file("b.toml", "[prompt]\nwidht = 256\n[[prompt.subset]]\nprompt = \"a\"\n", &p));
    CHECK_HAS(err.msg, "b.toml:2: ");
    CHECK_HAS(err.hint, "width");
    CHECK(!read_file("c.toml", "[prompt]\n[[prompt.subset]]\nwidth = 8\n", &p));
    CHECK(!read_file("d.toml", "[other]\n[[prompt.subset]]\nprompt = \"a\"\n", &p));
    CHECK(!read_file("e.toml", "[prompt]\nprompt = \"a\"\n", &p));
    CHECK(!read_file("f.toml", "[[prompt.subset]]\nprompt = \"a\"\nwidth = \"8\"\n", &p));
}

static void json_file_is_a_list(void)
{
    struct sample_prompt *p;
    REQUIRE(read_file("a.json",
                      "[{\"prompt\": \"a cat\", \"sample_steps\": 4, \"enum\": 0},\n \"a dog --s 5\"]",
                      &p) == 2);
    CHECK_INT(p[0].steps, 4);
    CHECK_INT(p[1].steps, 5);
    CHECK(!read_file("b.json", "[\n{\"prompt\": \"a\", \"seed\": -4}]", &p));
    CHECK_HAS(err.msg, "b.json:2: ");
    CHECK(!read_file("c.json", "{\"prompt\": \"a\"}", &p));
}

static void image_may_be_beside_the_file(void)
{
    struct sample_prompt *p;
    tree_put(&dir, "first.png", "x");
    REQUIRE(read_file("i.txt", "a --i first.png\nb --i none.png\n", &p) == 2);
    CHECK_STR(p[0].image, tree_path(&dir, "first.png"));
    CHECK_STR(p[1].image, "none.png");
}

int main(void)
{
    tree_make(&dir);
    RUN(line_has_all_options);
    RUN(what_is_not_given_says_so);
    RUN(dashes_may_be_text);
    RUN(wrong_options_are_refused);
    RUN(text_file_has_one_a_line);
    RUN(toml_file_has_common_keys);
    RUN(json_file_is_a_list);
    RUN(image_may_be_beside_the_file);
    arena_release(&arena);
    tree_remove(&dir);
    return check_done();
}
