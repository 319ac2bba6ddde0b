#!/bin/sh
# Programs of the system that Errand and its tests use: installs what is missing where it may, else says what to install.
# With the word `check` it only says.
missing=
for pair in bash:bash git:git setsid:util-linux ps:procps; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair##*:}"
done
[ -z "$missing" ] && exit 0
if [ "${1:-}" != check ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing from the system's packages:$missing"
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing && exit 0
fi
echo "Missing from this system:$missing. On Debian and Ubuntu: sudo apt-get install$missing" >&2
[ "${1:-}" = check ]
