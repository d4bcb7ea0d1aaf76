/* SPDX-License-Identifier: Apache-2.0 */
#include "media/picture.h"

#include "check.h"

static struct cairn_error err;

static void a_picture_has_its_bytes(void)
{
    struct picture p;
    CHECK_INT(picture_new(&p, 7, 5, 3, &err), 0);
    CHECK_INT(picture_bytes(&p), 105);
    picture_free(&p);
    CHECK(!p.at && !p.width);
}

static void impossible_sizes_are_refused(void)
{
    struct picture p;
    CHECK_INT(picture_new(&p, 0, 5, 3, &err), -1);
    CHECK_INT(picture_new(&p, SIZE_MAX / 2, SIZE_MAX / 2, 3, &err), -1);
    CHECK(!p.at);
    picture_free(&p);
}

int main(void)
{
    RUN(a_picture_has_its_bytes);
    RUN(impossible_sizes_are_refused);
    return check_done();
}
