#!/usr/bin/env bash
# Builds the wheels that are published, into dist: manylinux_2_28 for x86-64 and aarch64, musllinux_1_2 for x86-64.
#
#     python/wheels.sh [TARGET...]
#
# zig (the package ziglang) compiles the C parts and links, so that one machine builds for all. The standard library of a target
# that is not installed comes from rustup; or, where $RUST_SRC names the folder `library` of the very version of rustc, it is built
# from that. Debian's package rust-src has it, and so has rustup's component.
set -euo pipefail
cd "$(dirname "$0")/.."
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl)
python/venv.sh wheels
tools=$PWD/.venvs/wheels/bin
export PATH=$tools:$PATH

missing=()
for target in "${targets[@]}"; do
    case $target in
    *-musl) platform=musllinux_1_2 ;;
    *) platform=manylinux_2_28 ;;
    esac
    unstable=() bootstrap=()
    if [ ! -d "$(rustc --print target-libdir --target "$target")" ]; then
        if [ -n "${RUST_SRC:-}" ]; then
            # A stable compiler builds its own standard library only if told so.
            bootstrap=(RUSTC_BOOTSTRAP=1 "__CARGO_TESTS_ONLY_SRC_ROOT=$RUST_SRC")
            unstable=(-Z build-std=std,panic_unwind)
        elif ! rustup target add "$target"; then
            missing+=("$target")
            continue
        fi
    fi
    echo "== $target, $platform"
    env "${bootstrap[@]}" "$tools/maturin" build --locked --profile dist --zig --target "$target" --compatibility "$platform" \
        --out dist "${unstable[@]}"
done
for target in "${missing[@]}"; do
    echo "== not built: $target, because rustup could not fetch its standard library; RUST_SRC may name the source of it" >&2
done
[ ${#missing[@]} -eq 0 ]
