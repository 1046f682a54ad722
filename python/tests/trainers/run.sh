#!/usr/bin/env bash
# Runs the adapters against the real trainers, each in an environment of its own; `make develop` comes first.
#
#     python/tests/trainers/run.sh [ENVIRONMENT]...
set -euo pipefail
cd "$(dirname "$0")/../../.."
export PLAUDIT_BIN=${PLAUDIT_BIN:-$PWD/target/debug/plaudit}
export PYTHONPATH=$PWD/python
# Ray lets its workers stand back behind all others and gives a machine half a minute to start; that is not enough where others
# work as well.
export RAY_worker_niceness=0 RAY_raylet_start_wait_time_s=300 RAY_worker_register_timeout_seconds=300
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 RAY_USAGE_STATS_ENABLED=0
suites() {
    case $1 in
        verl-0.9) echo verl batch ray ;;
        verl-0.7) echo verl ;;
        verl-0.6) echo batch ;;
        trl) echo trl ;;
        openrlhf) echo openrlhf ;;
    esac
}
for name in ${@:-verl-0.9 verl-0.7 verl-0.6 trl openrlhf}; do
    python/venv.sh "$name"
    for suite in $(suites "$name"); do
        echo "== $suite in $name"
        # These start dozens of processes of Ray and torch, which now and then come too late on a small machine: what failed is
        # run once more, and the log shows both.
        ".venvs/$name/bin/python" -m pytest "python/tests/trainers/$suite" || {
            echo "== once more, what failed of $suite in $name"
            ".venvs/$name/bin/python" -m pytest --last-failed --last-failed-no-failures none "python/tests/trainers/$suite"
        }
    done
done
