#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tokens.sh BENCH CORPUS-SCRIPT FOLDER [COMMAND...]: bench_tokens on prose that this system has, gathered once in FOLDER.
set -eu

bench=$1
script=$2
text=$3/corpus.txt
shift 3
[ -s "$text" ] || "$script" "$text" || exit 77 # too little of it: skipped
exec "$bench" "$text" 3 "$@"
