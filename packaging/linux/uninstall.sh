#!/bin/sh
# Removes what install.sh has installed for this user, and tells where the user's own data lies.
set -eu
share="${XDG_DATA_HOME:-$HOME/.local/share}"

rm -rf "$HOME/.local/opt/Draftlight"
rm -f "$HOME/.local/bin/draftlight" "$share/applications/draftlight.desktop" \
    "$share/icons/hicolor/256x256/apps/draftlight.png" "$share/mime/packages/draftlight-gguf.xml"
update-mime-database "$share/mime" 2>/dev/null || true
update-desktop-database "$share/applications" 2>/dev/null || true

echo "Draftlight is removed. What it kept for you stays; delete it if you like:"
for folder in "$share/Draftlight" "${XDG_CONFIG_HOME:-$HOME/.config}/Draftlight" \
    "${XDG_CACHE_HOME:-$HOME/.cache}/Draftlight" "${XDG_STATE_HOME:-$HOME/.local/state}/Draftlight"
do
    if [ -d "$folder" ]; then
        echo "  $folder"
    fi
done
