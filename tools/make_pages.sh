#!/bin/sh
# Writes the manual page and the completions of an executable of ours, as it tells them itself:
#
#     tools/make_pages.sh build/leat leat build/pages    # leat.1.gz, leat.bash, leat.zsh, leat.fish
set -eu
executable=$1
name=$2
directory=$3
mkdir -p "$directory"
"$executable" man >"$directory/$name.1"
gzip -9nf "$directory/$name.1"
for shell in bash zsh fish; do
  "$executable" completion "$shell" >"$directory/$name.$shell"
done
