/* SPDX-License-Identifier: Apache-2.0 */
#include "base/exit_code.h"

enum exit_code exit_code_of(const struct cairn_error *err)
{
    return err->code == CAIRN_EUSAGE ? EXIT_USAGE : err->code == CAIRN_ELACK ? EXIT_LACKS : EXIT_TROUBLE;
}
