#!/usr/bin/env bash
# Makes the environment .venvs/NAME from python/requirements/NAME.txt and puts a wheel of plaudit into it, where one is given.
#
#     python/venv.sh NAME [WHEEL]
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1 wheel=${2:-}
python=${PYTHON:-python3}
if [ ! -x .venvs/tools/bin/uv ]; then
    "$python" -m venv .venvs/tools
    .venvs/tools/bin/python -m pip install --quiet --disable-pip-version-check 'uv==0.13.7' 'maturin==1.16.0'
fi
uv=.venvs/tools/bin/uv
[ "$name" = tools ] && exit 0
# Another process may be making the same environment.
exec 9> ".venvs/$name.lock"
if command -v flock > /dev/null; then flock 9; fi
stamp=.venvs/$name/requirements.txt
if ! cmp --silent "python/requirements/$name.txt" "$stamp"; then
    rm -rf ".venvs/$name"
    "$uv" venv --quiet --python "$python" ".venvs/$name"
    overrides=python/requirements/$name.overrides.txt
    [ -f "$overrides" ] || overrides=/dev/null
    "$uv" pip install --quiet --compile-bytecode --python ".venvs/$name/bin/python" -r "python/requirements/$name.txt" --overrides "$overrides"
    if [ -f "python/requirements/$name.alone.txt" ]; then
        "$uv" pip install --quiet --python ".venvs/$name/bin/python" --no-deps -r "python/requirements/$name.alone.txt"
    fi
    cp "python/requirements/$name.txt" "$stamp"
fi
if [ -n "$wheel" ]; then
    "$uv" pip install --quiet --python ".venvs/$name/bin/python" --no-deps --force-reinstall "$wheel"
fi
