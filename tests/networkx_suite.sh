#!/usr/bin/env bash
# NetworkX's own tests with Penstock as the backend, and NetworkX for what Penstock has not or refuses.
#
# Fallback would hide a backend that never loads: at least so many lines of the adapter must have been run.
# What is expected to fail, and why, is in src/penstock/interfaces/nx/suite.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTHON=${PYTHON:-.venv/bin/python}
FLOOR=${FLOOR:-85}
tests=$("$PYTHON" -c 'import networkx, pathlib; print(pathlib.Path(networkx.__file__).parent)')

# Any text means true to NetworkX, even "False". The workers have a core each, and the graphs a dozen nodes.
export NETWORKX_TEST_BACKEND=penstock NETWORKX_FALLBACK_TO_NX=True PENSTOCK_THREADS=1
exec "$PYTHON" -m pytest --rootdir "$tests" --config-file /dev/null --override-ini cache_dir=/dev/null -p no:cacheprovider \
    -q -n "${JOBS:-2}" --dist worksteal --tb=short \
    --cov penstock.interfaces.nx --cov-report term --cov-fail-under "$FLOOR" "$tests" "$@"
