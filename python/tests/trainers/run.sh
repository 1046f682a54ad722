#!/usr/bin/env bash
# Runs the adapters against the real trainers, each in an environment of its own; `make develop` comes first.
#
#     [TESTS=python/tests/trainers/FILE::NAME] python/tests/trainers/run.sh [ENVIRONMENT]...
#
# A suite that fails does not keep the others from running.
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
        verl-0.9 | verl-newest) echo verl batch ray ;;
        verl-0.7) echo verl ;;
        verl-0.6) echo batch ;;
        trl | trl-newest) echo trl serve/test_trl.py ;;
        openrlhf) echo openrlhf serve/test_openrlhf.py serve/test_slime.py ;;
        peers) echo peers ;;
        nemo-gym) echo serve/test_nemo_gym.py ;;
    esac
}
# NeMo-Gym is for Python 3.12 and later: the one of PYTHON_NEW, or one that is found.
newer() {
    local python
    for python in "${PYTHON_NEW:-}" python3.13 python3.12 $(ls -d "$(pyenv root 2>/dev/null)"/versions/3.1[2-9]*/bin/python 2>/dev/null); do
        if [ -n "$python" ] && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
}
status=0
for name in ${@:-verl-0.9 verl-0.7 verl-0.6 trl openrlhf peers nemo-gym}; do
    if [ "$name" = nemo-gym ]; then
        found=$(newer)
        if [ -z "$found" ]; then
            echo "== nemo-gym is left out: no Python 3.12 was found, PYTHON_NEW can name one"
            continue
        fi
        PYTHON=$found python/venv.sh "$name"
    else
        python/venv.sh "$name"
    fi
    for suite in ${TESTS:-$(suites "$name")}; do
        echo "== $suite in $name"
        if ! ".venvs/$name/bin/python" -m pytest "python/tests/trainers/${suite#python/tests/trainers/}"; then
            echo "== failed: $suite in $name"
            status=1
        fi
    done
done
exit $status
