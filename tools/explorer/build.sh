#!/usr/bin/env bash
# Build the libraries of the explorer's page into one file, with their licences beside it: `make explorer-libraries`.
# The versions are those of package-lock.json, which has the checksums of what the npm registry gives.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$here/../../src/retrograd/explorer/assets/vendor
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/package.json "$here"/package-lock.json "$here"/libraries.js "$work"
cd "$work"
npm ci --ignore-scripts --no-audit --no-fund --silent
node_modules/.bin/esbuild libraries.js --bundle --minify --format=iife --global-name=libraries --target=es2020 \
    --legal-comments=none --log-level=warning --outfile="$out/explorer-libraries.min.js" --metafile=meta.json
node - "$out/LICENSES.txt" <<'EOF'
// The licence of every package that went into the bundle.
const fs = require("fs");
const inputs = Object.keys(JSON.parse(fs.readFileSync("meta.json")).inputs);
const names = new Set(inputs.filter((p) => p.startsWith("node_modules/"))
    .map((p) => p.split("/").slice(1, p.startsWith("node_modules/@") ? 3 : 2).join("/")));
names.add("@dagrejs/graphlib"); // dagre has it built in
let text = "explorer-libraries.min.js is built from these packages of the npm registry:\n";
for (const name of [...names].sort()) {
    const folder = `node_modules/${name}`;
    const about = JSON.parse(fs.readFileSync(`${folder}/package.json`));
    const file = fs.readdirSync(folder).find((f) => /^licen[sc]e/i.test(f));
    if (!file) throw new Error(`${name} has no licence file`);
    text += `\n${"=".repeat(100)}\n${name} ${about.version} (${about.license})\n${"=".repeat(100)}\n\n`;
    text += fs.readFileSync(`${folder}/${file}`, "utf8").trim() + "\n";
}
fs.writeFileSync(process.argv[2], text);
EOF
ls -l "$out"
