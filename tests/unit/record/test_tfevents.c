/* SPDX-License-Identifier: Apache-2.0 */
#include "record/tfevents.h"

#include "check.h"

static void crc_of_known_bytes(void)
{
    char zeros[32] = { 0 }, ones[32];
    memset(ones, 0xff, sizeof(ones));
    /* RFC 3720, appendix B.4 */
    CHECK_INT(tfevents_crc32c(zeros, 32), 0x8a9136aa);
    CHECK_INT(tfevents_crc32c(ones, 32), 0x62a8ab43);
    CHECK_INT(tfevents_crc32c("123456789", 9), 0xe3069283);
    CHECK_INT(tfevents_crc32c("", 0), 0);
}

static void same_bytes(struct str *got, const char *want, size_t n)
{
    CHECK_INT(got->len, n);
    for (size_t i = 0; i < n && i < got->len; i++)
        if (got->s[i] != want[i]) {
            CHECK_FAIL_("byte %zu is %02x, want %02x", i, got->s[i] & 0xff, want[i] & 0xff);
            break;
        }
    str_release(got);
}

/* What TensorBoard's own writer makes of the same events. */
static void records_are_those_of_tensorboard(void)
{
    static const char version[] =
        "\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7f\x4b\x22\x09\x00\x00\x00\x00\x00\x00\xf8"
        "\x3f\x1a\x0d\x62\x72\x61\x69\x6e\x2e\x45\x76\x65\x6e\x74\x3a\x32\x2a\x28\x64\x6c";
    static const char start[] =
        "\x0f\x00\x00\x00\x00\x00\x00\x00\x6d\x53\x2b\x09\x09\x00\x00\x00\x00\x00\x00\xf8"
        "\x3f\x10\x79\x3a\x02\x08\x01\x00\x9c\xcc\x2e";
    static const char scalars[] =
        "\x26\x00\x00\x00\x00\x00\x00\x00\x73\x4f\xe3\x00\x09\x00\x00\x00\x00\x00\x00\xf8"
        "\x3f\x10\xac\x02\x2a\x18\x0a\x0b\x0a\x04\x6c\x6f\x73\x73\x15\x00\x00\x00\x3f\x0a"
        "\x09\x0a\x02\x6c\x72\x15\x17\xb7\x51\x39\xbc\x61\x4a\x6d";
    static const char text[] =
        "\x2f\x00\x00\x00\x00\x00\x00\x00\x6d\x5d\x1d\x50\x09\x00\x00\x00\x00\x00\x00\xf8"
        "\x3f\x10\x07\x2a\x22\x0a\x20\x0a\x06\x73\x61\x6d\x70\x6c\x65\x42\x0a\x08\x07\x12"
        "\x00\x42\x04\x6f\x6e\x63\x65\x4a\x0a\x0a\x06\x0a\x04\x74\x65\x78\x74\x20\x02\x58"
        "\xa1\xc6\xa5";
    struct str out = { 0 };
    tfevents_add_version(&out, 1.5);
    same_bytes(&out, version, sizeof(version) - 1);
    tfevents_add_start(&out, 1.5, 121);
    same_bytes(&out, start, sizeof(start) - 1);
    const struct tfevents_scalar values[] = { { "loss", 0.5 }, { "lr", 2e-4 } };
    tfevents_add_scalars(&out, 1.5, 300, values, 2);
    same_bytes(&out, scalars, sizeof(scalars) - 1);
    tfevents_add_text(&out, 1.5, 7, "sample", "once");
    same_bytes(&out, text, sizeof(text) - 1);
}

int main(void)
{
    RUN(crc_of_known_bytes);
    RUN(records_are_those_of_tensorboard);
    return check_done();
}
