#!/bin/sh
# Installs Draftlight for this user; needs no rights of an administrator. uninstall.sh undoes it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
share="${XDG_DATA_HOME:-$HOME/.local/share}"
place="$HOME/.local/opt/Draftlight"

if [ "$here" = "$place" ]; then
    echo "Draftlight is installed already, in $place."
    exit 0
fi
mkdir -p "$HOME/.local/opt" "$HOME/.local/bin" "$share/applications" \
    "$share/icons/hicolor/256x256/apps" "$share/mime/packages"
rm -rf "$place.new"
cp -R "$here" "$place.new"
rm -rf "$place"
mv "$place.new" "$place"

ln -sf "$place/Draftlight" "$HOME/.local/bin/draftlight"
cp "$place/draftlight.png" "$share/icons/hicolor/256x256/apps/draftlight.png"
cp "$place/draftlight-gguf.xml" "$share/mime/packages/draftlight-gguf.xml"
program=$(printf '%s' "$place/Draftlight" | sed 's/[&|\\]/\\&/g')
sed "s|@PROGRAM@|$program|" "$place/draftlight.desktop" > "$share/applications/draftlight.desktop"

# Where a system has no such command, its desktop notices by itself.
update-mime-database "$share/mime" 2>/dev/null || true
update-desktop-database "$share/applications" 2>/dev/null || true

echo "Draftlight is installed in $place and stands in the menu; in a terminal it is draftlight."
echo "This folder is not needed any more. $place/uninstall.sh removes Draftlight again."
