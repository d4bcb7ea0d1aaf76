/* SPDX-License-Identifier: Apache-2.0
 * Lists the tensors of a file, or prints the numbers of one.
 *
 *     cc read_tensor.c -o read_tensor $(pkg-config --cflags --libs cairn-tensor)
 *     ./read_tensor model.safetensors
 *     ./read_tensor model.safetensors blocks.0.weight */
#include <cairn/tensor.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int complain(const struct cairn_tensor_error *err)
{
    fprintf(stderr, "read_tensor: %s\n", err->message);
    if (err->hint[0])
        fprintf(stderr, "  %s\n", err->hint);
    return 1;
}

static int list(const struct cairn_tensor_file *file)
{
    struct cairn_tensor_info t;
    for (size_t i = 0; !cairn_tensor_get(file, i, &t); i++) {
        printf("%s %s [", t.name, t.dtype);
        for (size_t d = 0; d < t.rank; d++)
            printf("%s%" PRIu64, d ? ", " : "", t.shape[d]);
        printf("] %" PRIu64 " bytes\n", t.bytes);
    }
    return 0;
}

static int show(const struct cairn_tensor_file *file, const char *name)
{
    struct cairn_tensor_error err;
    struct cairn_tensor_info t;
    size_t i = cairn_tensor_find(file, name);
    if (cairn_tensor_get(file, i, &t)) {
        fprintf(stderr, "read_tensor: no tensor %s\n", name);
        return 1;
    }
    float *numbers = calloc(t.elements ? t.elements : 1, sizeof(*numbers));
    if (!numbers)
        return 1;
    int bad =
        cairn_tensor_read(file, i, 0, t.elements, "F32", 0, numbers, t.elements * sizeof(*numbers), &err);
    for (uint64_t k = 0; !bad && k < t.elements; k++)
        printf("%g\n", numbers[k]);
    free(numbers);
    return bad ? complain(&err) : 0;
}

int main(int argc, char **argv)
{
    struct cairn_tensor_error err;
    struct cairn_tensor_file *file;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: read_tensor FILE [TENSOR]\n");
        return 2;
    }
    if (cairn_tensor_open(argv[1], &file, &err))
        return complain(&err);
    int status = argc == 3 ? show(file, argv[2]) : list(file);
    cairn_tensor_close(file);
    return status;
}
