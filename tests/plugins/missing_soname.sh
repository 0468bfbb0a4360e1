#!/bin/sh
# Builds missing_soname.so in the directory $1, linked to a library that does not exist at run time.
set -eu
here=$(dirname "$0")
out=$1
stub=$out/libdoes_not_exist_oarlock.so
echo 'typedef int nothing;' | cc -x c -shared -fPIC -Wl,-soname,libdoes_not_exist_oarlock.so.1 -o "$stub" -
cc -std=c11 -O2 -fPIC -shared -I"$here/../../device-sdk/include" -o "$out/missing_soname.so" "$here/missing_soname.c" \
    -Wl,--no-as-needed "$stub"
rm "$stub"
