#!/bin/bash -eu
# Builds every fuzz target into $OUT, each with its committed seeds beside it; from the root of the repository.
#
# Run so far on a plain machine only, as `OUT=FOLDER .clusterfuzzlite/build.sh`: all targets were built and started from
# there. It was not run in the container of the Dockerfile, whose Rust must be 1.95 or newer.
cargo fuzz build
triple=$(rustc -vV | sed -n 's/^host: //p')
for path in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$path" .rs)
    cp "${CARGO_TARGET_DIR:-fuzz/target}/$triple/release/$target" "$OUT/"
    # Python packs, since zip is not everywhere; names without folders, as the engine wants them.
    (cd "corpus/$target" && python3 -m zipfile -c "$OUT/${target}_seed_corpus.zip" ./*.bin)
done
