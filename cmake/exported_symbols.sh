#!/bin/sh
# exported_symbols.sh READELF OBJECTS: prints a version script that exports exactly the symbols
# which the object files named in file OBJECTS define with default visibility, except functions with
# variants per processor and their resolvers, which have default visibility whatever the compiler
# options.
set -e
echo '{ global:'
tr '\n' '\0' < "$2" | xargs -0 "$1" --wide --symbols |
  awk '$7 != "UND" && $6 == "DEFAULT" && ($5 == "GLOBAL" || $5 == "WEAK" || $5 == "UNIQUE") && $4 != "IFUNC" { print $8 ";" }' |
  grep -v '\.resolver;$' | LC_ALL=C sort -u
echo 'local: *; };'
