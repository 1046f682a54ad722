#!/usr/bin/env bash
# Builds bench/.venv, the peers' environment: RM-Gallery 0.1.7 and the few packages its rewards import, and in .venv/math a newer
# math-verify, which PYTHONPATH puts before RM-Gallery's.
# It does nothing when the environment is there and this script and the requirements have not changed.
set -euo pipefail
cd "$(dirname "$0")"

stamp=.venv/stamp
wanted=$(cat setup.sh requirements.txt requirements-math.txt | sha256sum | cut -d' ' -f1)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi

rm -rf .venv
python3 -m venv .venv
.venv/bin/python -m pip --quiet --disable-pip-version-check install --no-deps --requirement requirements.txt
.venv/bin/python -m pip --quiet --disable-pip-version-check install --no-deps --target .venv/math --requirement requirements-math.txt

# tiktoken wants to download its vocabulary. The litellm wheel carries the file under the very name that tiktoken
# looks for in TIKTOKEN_CACHE_DIR, so the wheel is fetched, never installed, and this one file is taken out of it.
.venv/bin/python -m pip --quiet --disable-pip-version-check download --no-deps --only-binary :all: --dest .venv/wheel litellm==1.74.0
.venv/bin/python - <<'PYTHON'
import hashlib
import pathlib
import zipfile

CACHE_NAME = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"  # SHA-1 of the address tiktoken has for cl100k_base
CONTENT = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"  # SHA-256 that tiktoken demands

(wheel,) = pathlib.Path(".venv/wheel").glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    vocabulary = archive.read(f"litellm/litellm_core_utils/tokenizers/{CACHE_NAME}")
if hashlib.sha256(vocabulary).hexdigest() != CONTENT:
    raise SystemExit("the cl100k_base vocabulary is not the expected one")
folder = pathlib.Path(".venv/tiktoken")
folder.mkdir()
(folder / CACHE_NAME).write_bytes(vocabulary)
PYTHON
rm -r .venv/wheel

echo "$wanted" > "$stamp"
