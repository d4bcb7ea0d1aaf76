/* SPDX-License-Identifier: Apache-2.0
 * Stands in for libFuzzer where there is none: feeds a harness every file of the folders it is given, every
 * beginning of each, and each with one byte changed.  So the corpus is tested by every build.  VALUES says
 * to how many values a byte is changed. */
#include "base/cleanup.h"
#include "fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>

enum { LARGEST = 1 << 20, VARIED = 4096 };

static bool slurp(const char *path, uint8_t **data, size_t *size)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    *data = malloc(LARGEST);
    *size = *data ? fread(*data, 1, LARGEST, f) : 0;
    fclose(f);
    return *data != NULL;
}

static size_t feed_variants(uint8_t *data, size_t size)
{
    static const uint8_t nasty[] = { 0x00, 0xff, '\n', ' ', '-', '9' };
    size_t fed = 0;
    for (size_t at = 0; at < size && at < VARIED; at++) {
        fed += !LLVMFuzzerTestOneInput(data, at);
        uint8_t kept = data[at];
        for (size_t k = 0; k < VALUES; k++) {
            data[at] = nasty[(at + k) % sizeof(nasty)];
            fed += !LLVMFuzzerTestOneInput(data, size);
        }
        data[at] = kept;
    }
    return fed;
}

static size_t feed_file(const char *path)
{
    CLEANUP(mem_free) uint8_t *data = NULL;
    size_t size = 0;
    if (!slurp(path, &data, &size))
        return 0;
    size_t fed = !LLVMFuzzerTestOneInput(data, size);
    return fed + feed_variants(data, size);
}

static size_t feed_folder(const char *folder)
{
    size_t fed = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[4096];
        struct stat st;
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        if (!stat(path, &st) && S_ISREG(st.st_mode))
            fed += feed_file(path);
    }
    if (d)
        closedir(d);
    return fed;
}

int main(int argc, char **argv)
{
    size_t fed = !LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        size_t here = feed_folder(argv[i]);
        if (!here)
            printf("# nothing in %s\n", argv[i]);
        fed = here ? fed + here : 0;
    }
    printf("%sok 1 - %zu inputs\n1..1\n", fed ? "" : "not ", fed);
    return fed == 0;
}
