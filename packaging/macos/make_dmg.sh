#!/bin/sh
# make_dmg.sh APP DMG: a disk image with the app and a link to Applications. Not yet run.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -R "$1" "$scratch/"
ln -s /Applications "$scratch/Applications"
hdiutil create -volname Draftlight -srcfolder "$scratch" -format UDZO -ov "$2"
