#!/bin/sh
# The system requirements of Errand and its tests: programs, and the libraries Qt needs for a window under X and Wayland.
# Installs what is missing if it may, otherwise says what to install. With the argument `check` it only says so.
# The tests also need a virtual display and a session bus; `check` omits these.
# Without it the tests of the browser are skipped.
if [ "${1:-}" != check ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 &&
    ! command -v chromium-headless-shell >/dev/null 2>&1 && ! command -v chromium >/dev/null 2>&1 &&
    ! command -v google-chrome >/dev/null 2>&1; then
    echo "Installing Chromium …"
    { apt-get update -qq && { apt-get install -y -qq --no-install-recommends chromium-headless-shell ||
        apt-get install -y -qq --no-install-recommends chromium; }; } ||
        echo "Chromium could not be installed: the tests of the browser are skipped." >&2
fi
missing=
programs="bash:bash git:git setsid:util-linux ps:procps"
[ "${1:-}" = check ] || programs="$programs bwrap:bubblewrap Xvfb:xvfb xdotool:xdotool dbus-daemon:dbus"
for pair in $programs; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair##*:}"
done
ldconfig=$(command -v ldconfig || echo /sbin/ldconfig)
if [ "$(uname -s)" = Linux ] && [ -x "$ldconfig" ]; then
    known=$("$ldconfig" -p)
    for pair in libEGL.so.1:libegl1 libGL.so.1:libgl1 libxkbcommon.so.0:libxkbcommon0 \
        libxkbcommon-x11.so.0:libxkbcommon-x11-0 libdbus-1.so.3:libdbus-1-3 libfontconfig.so.1:libfontconfig1 \
        libxcb-icccm.so.4:libxcb-icccm4 libxcb-keysyms.so.1:libxcb-keysyms1 libxcb-cursor.so.0:libxcb-cursor0 \
        libxcb-image.so.0:libxcb-image0 libxcb-render-util.so.0:libxcb-render-util0 libxcb-shape.so.0:libxcb-shape0 \
        libxcb-xinerama.so.0:libxcb-xinerama0 libxcb-xkb.so.1:libxcb-xkb1; do
        case "$known" in *"${pair%%:*} "*) ;; *) missing="$missing ${pair##*:}" ;; esac
    done
fi
[ -z "$missing" ] && exit 0
if [ "${1:-}" != check ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing from the system's packages:$missing"
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing && exit 0
fi
echo "Missing from this system:$missing. On Debian and Ubuntu: sudo apt-get install$missing" >&2
[ "${1:-}" = check ]
