#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs into an empty folder; the example is built by pkg-config alone, against the shared and the static library,
# and the Python module finds the library by itself.
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
count=0
failed=0

ok()
{
    count=$((count + 1))
    if [ "$1" = 0 ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        failed=1
    fi
}

DESTDIR=$tmp meson install -C "$BUILD" --no-rebuild --quiet >"$tmp/log" 2>&1
ok $? "installs"
pc=$(dirname "$(find "$tmp" -name cairn-tensor.pc)")
library=$(dirname "$(find "$tmp" -name 'libcairn-tensor.so')")
known=$(pkg-config --variable pc_path pkg-config)
export PKG_CONFIG_LIBDIR=$pc:$known PKG_CONFIG_SYSROOT_DIR=
flags()
{
    # The prefix in the file is the one of a real installation; here it lies below a folder.
    pkg-config "$@" --define-variable=prefix="$tmp$(pkg-config --variable=prefix cairn-tensor)" cairn-tensor
}
extra=()
[ "$SANITIZE" = none ] || extra=("-fsanitize=$SANITIZE")

# shellcheck disable=SC2046,SC2086 # lists of words
$CC "${extra[@]}" "$SOURCE/examples/read_tensor.c" -o "$tmp/shared" $(flags --cflags --libs)
ok $? "the example builds against the shared library"
LD_LIBRARY_PATH=$library "$tmp/shared" "$CAIRN_TEST_DATA/torch/single.safetensors" >"$tmp/list"
[ "$(cat "$tmp/list")" = "tensor F32 [2, 3] 24 bytes" ]
ok $? "it lists a file"
LD_LIBRARY_PATH=$library "$tmp/shared" "$CAIRN_TEST_DATA/torch/single.pth" tensor >"$tmp/numbers"
[ "$(tr '\n' ' ' <"$tmp/numbers")" = "0 1 2 3 4 5 " ]
ok $? "it reads a torch file"
LD_LIBRARY_PATH=$library "$tmp/shared" "$CAIRN_TEST_DATA/torch/function.pth" 2>"$tmp/refusal"
[ $? = 1 ] && grep -q 'posix.system' "$tmp/refusal"
ok $? "it tells a refusal"

# shellcheck disable=SC2046,SC2086
$CC "${extra[@]}" $(flags --cflags) "$SOURCE/examples/read_tensor.c" -o "$tmp/static" \
    "$library/libcairn-tensor.a" $(pkg-config --libs jansson) -lm -lpthread
ok $? "the example builds against the static library"
"$tmp/static" "$CAIRN_TEST_DATA/torch/single.pth" tensor | cmp -s - "$tmp/numbers"
ok $? "and gives the same numbers"

if [ "$SANITIZE" = none ]; then
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(dirname "$(find "$tmp" -name cairn_tensor.py)") python3 - \
        "$CAIRN_TEST_DATA/torch" <<'PYTHON'
import sys
import cairn_tensor
with cairn_tensor.safe_open(sys.argv[1] + '/single.pth', framework='plain') as f:
    assert f.keys() == ['tensor'] and f.shape('tensor') == [2, 3] and f.get_tensor('tensor').tolist() == [[0, 1, 2], [3, 4, 5]]
PYTHON
    ok $? "the Python module finds the library"
else
    count=$((count + 1))
    echo "ok $count - the Python module finds the library # SKIP python3 itself is not built with sanitizers"
fi
symbols=$(nm -D --defined-only "$library/libcairn-tensor.so" | awk '{print $3}' | grep -v '^cairn_tensor_' |
    grep -vE '^(__?asan|__?ubsan|__?sanitizer|__odr_asan)')
[ -z "$symbols" ]
ok $? "the shared library offers nothing but its interface"

mkdir -p "$tmp/usr/local/bin" && echo mine >"$tmp/usr/local/bin/other"
work=$(mktemp -d -t cairn.XXXXXX)
TMPDIR=$work DESTDIR=$tmp "$SOURCE/scripts/uninstall" "$BUILD" >"$tmp/removed" 2>&1
ok $? "uninstalls"
rm -rf "$work"
left=$(find "$tmp" -name '*cairn*' ! -name '*.pyc' | grep -v __pycache__)
[ -z "$left" ] && [ -e "$tmp/usr/local/bin/other" ] && [ -d "$tmp/usr/local/share/man/man1" ] && grep -q '/bin/cairn$' "$tmp/removed"
ok $? "nothing of it is left, and what is not its own stays"
echo "1..$count"
exit "$failed"
