#!/bin/sh
# Lets programs find the shared libraries that `make install` has just installed, or says what to do:
#
#     tools/after_install.sh build/install_manifest.txt
#
# Does nothing with DESTDIR: then the files are meant for another place.
set -eu
[ -z "${DESTDIR:-}" ] || exit 0
library=$(grep -m 1 '/libleat\.so\.[0-9]*$' "$1") || exit 0
directory=$(dirname "$library")
PATH=$PATH:/usr/sbin:/sbin
# Of each directory that the loader searches, ldconfig -v prints a line "/usr/local/lib: (from …)".
if ! ldconfig -N -X -v 2>/dev/null | grep -q "^$directory:"; then
  echo "note: programs do not find the libraries in $directory by themselves:" \
    "set LD_LIBRARY_PATH=$directory, or add it to /etc/ld.so.conf.d and run ldconfig"
elif [ "$(id -u)" -eq 0 ]; then
  ldconfig
else
  echo "note: run ldconfig as root, so that programs find the libraries in $directory"
fi
