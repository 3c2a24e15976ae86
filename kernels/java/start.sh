#!/bin/sh
# Starts the driver of the language `java`, with fd 3 a socket to the agent: a JDK of 17 or more, and nothing else.
# The sandbox has its own idea of how much memory there is, which Java would not find by itself.
classes=$(mktemp -d "${TMPDIR:-/tmp}/java-XXXXXX") || exit 1
memory=$(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1k/p' /proc/meminfo)
exec java -XX:MaxRAM="$memory" -XX:MaxRAMPercentage=60 -XX:+UseSerialGC -Xshare:auto -XX:-UsePerfData \
    -Djava.awt.headless=true -Djava.security.manager=allow -Dfile.encoding=UTF-8 \
    --add-opens java.base/java.io=ALL-UNNAMED --add-opens java.base/java.lang=ALL-UNNAMED \
    --add-opens java.base/java.util=ALL-UNNAMED -cp "$classes" "${0%/*}/Start.java" "$classes" "${0%/*}/cloister"
