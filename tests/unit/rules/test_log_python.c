/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_python.h"

#include "base/cleanup.h"
#include "check.h"

static void see(struct log_python *p, const char *line)
{
    static const char *const texts[] = { "site-packages", "dist-packages" };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        for (const char *at = line; (at = strstr(at, texts[i])) != NULL; at++)
            log_python_see(p, line, strlen(line), (size_t)(at - line));
}

static void every_form_of_a_path(void)
{
    static const struct {
        const char *line, *exe;
    } rows[] = {
        { "  File \"/home/me/ai-toolkit/venv/lib/python3.11/site-packages/torch/cuda/__init__.py\", line 4",
          "/home/me/ai-toolkit/venv/bin/python" },
        { "  File \"/home/me/my models/.venv/lib64/python3.12/site-packages/torch/x.py\"",
          "/home/me/my models/.venv/bin/python" },
        { "not found at /opt/app/lib64/python3.12/site-packages/bitsandbytes/lib.so", "/opt/app/bin/python" },
        { "/opt/conda/envs/wan/lib/python3.10/site-packages/diffusers/a.py:11: UserWarning",
          "/opt/conda/envs/wan/bin/python" },
        { "/home/me/.local/lib/python3.10/site-packages/torch/x.py:3", "python3.10" },
        { "/usr/local/lib/python3.9/dist-packages/torch/x.py:3", "python3.9" },
        { "/usr/lib/python3.11/site-packages/torch", "python3.11" },
        { "/usr/lib/python3/dist-packages/torch/x.py", "python3" },
        { "File \"C:\\Users\\me\\ComfyUI\\.venv\\Lib\\site-packages\\torch\\x.py\"",
          "C:\\Users\\me\\ComfyUI\\.venv\\Scripts\\python.exe" },
        { "File \"C:\\Users\\me\\miniconda3\\envs\\neo\\Lib\\site-packages\\torch\\x.py\"",
          "C:\\Users\\me\\miniconda3\\envs\\neo\\python.exe" },
        { "File \"D:\\ComfyUI\\python_embeded\\Lib\\site-packages\\torch\\x.py\"",
          "D:\\ComfyUI\\python_embeded\\python.exe" },
        { "\".../site-packages/torch/x.py\"", "" },
        { "site-packages", "" },
        { "/site-packages/torch", "" },
        { "lib/python3.11/site-packages/torch", "" },
        { "[/v/lib/python3.11/site-packages]", "/v/bin/python" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct log_python p = { .weight = 0 };
        see(&p, rows[i].line);
        CHECK_STR(p.exe, rows[i].exe);
    }
}

static void the_environment_of_torch_counts(void)
{
    struct log_python p = { .weight = 0 };
    see(&p, "File \"/usr/lib/node/lib/python3.9/site-packages/gyp/x.py\"");
    see(&p, "File \"/a/lib/python3.11/site-packages/torch/x.py\"");
    see(&p, "File \"/b/lib/python3.11/site-packages/torch/x.py\"");
    CHECK_STR(p.exe, "/a/bin/python");
}

static void a_path_that_is_too_long(void)
{
    char line[1024];
    memset(line, 'a', sizeof(line));
    line[0] = '/';
    strcpy(line + 900, "/lib/python3.11/site-packages/torch");
    struct log_python p = { .weight = 0 };
    see(&p, line);
    CHECK_STR(p.exe, "");
}

int main(void)
{
    RUN(every_form_of_a_path);
    RUN(the_environment_of_torch_counts);
    RUN(a_path_that_is_too_long);
    return check_done();
}
