# SPDX-License-Identifier: BSD-2-Clause
# Record batches that this library encoded and compressed, with every codec of
# the build at its lowest, default and highest level, read by Kafka's own
# classes: the crc, the header, each key, value and header, nulls among them.
# One spoilt byte, wherever it is, and that reader must say no.
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

root=$(cd "$KP_IT/../.." && pwd)
golden=$root/test/golden
build=$(cd "$KP_BUILD/../.." && pwd)
export srcdir=$root

# It calls what the shared library does not export.
# shellcheck disable=SC2046,SC2086
must ${CC:-cc} -std=c11 -D_GNU_SOURCE -include "$build/config.h" -I"$root" \
    -I"$root/include" -O1 -pthread -o "$T/encode" \
    "$golden/encode_batches.c" "$root/test/support/golden.c" \
    "$root/test/support/golden_record.c" "$KP_BUILD/libkp.a" \
    $(sed -n 's/^DEP_LIBS := //p' "$build/config.mk")
"$T/encode" >"$T/ours.txt" || fail "encode_batches: status $?"
must javac -nowarn -d "$T" -cp "$CP" "$golden/Hex.java" \
    "$golden/DecodeBatches.java"

# decode FILE: what Kafka's classes make of its batches
decode() { CP=$T:$CP java_tool DecodeBatches "$1" 2>&1; }

said=$(decode "$T/ours.txt") || fail "$said"
echo "$said"
[ "$said" = "$(grep -c '^batch ' "$T/ours.txt") batches, $(grep -c \
    '^record ' "$T/ours.txt") records as expected" ] || fail "not all"
for codec in none $(sed -n 's/^HAVE := //p' "$build/config.mk" |
    tr '[:upper:]' '[:lower:]' | sed 's/zlib\|libdeflate/gzip/'); do
    case $codec in none | gzip | snappy | lz4 | zstd) ;; *) continue ;; esac
    at_least "batches of $codec" \
        "$(grep -c "^batch .* $codec\$" "$T/ours.txt")" 32
done

# The last byte of the first batch of each codec, another bit in it.
for codec in $(sed -n 's/^batch .* //p' "$T/ours.txt" | sort -u); do
    awk -v end=" $codec\$" '$1 == "batch" { mine = $0 ~ end }
        mine { print } mine && $1 == "end" { exit }' "$T/ours.txt" |
        sed '/^bytes /s/\(.*\)\([0-9a-f]\)$/\1 \2/' |
        awk '$1 == "bytes" { h = "0123456789abcdef"
            $0 = $1 " " $2 substr(h, 17 - index(h, $3), 1) } { print }' \
        >"$T/spoilt.txt"
    grep -q '^bytes ' "$T/spoilt.txt" || fail "$codec: no bytes"
    said=$(decode "$T/spoilt.txt") && fail "$codec: a spoilt byte passed"
    [[ $said == *crc* ]] || fail "$codec: $said"
done
