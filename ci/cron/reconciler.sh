#!/usr/bin/env bash
# One scheduled run over a checkout of the specs:
#   reconciler.sh drift     reports drift; changes nothing
#   reconciler.sh apply     brings tables to their specs, within the limits of policies
# Exit codes are the command's. Set in the environment or in the crontab:
#   RECONCILER_REPOSITORY   the checkout (its branch is pulled first)
#   RECONCILER_OPTIONS      such as: --env prod -l apply=scheduled
#   RECONCILER_SPECS        the folder of specs in it          (specs)
#   RECONCILER_STATE        for the lock and the audit record  (~/.local/state/reconciler)
set -euo pipefail

task=${1:-}
case $task in
  drift | apply) ;;
  *)
    echo "usage: $0 drift|apply" >&2
    exit 64
    ;;
esac
: "${RECONCILER_REPOSITORY:?is not set: name the checkout of the specs}"
specs=${RECONCILER_SPECS:-specs}
state=${RECONCILER_STATE:-$HOME/.local/state/reconciler}
read -ra options <<< "${RECONCILER_OPTIONS:-}"

mkdir -p "$state"
exec 9> "$state/lock"
if ! flock --nonblock 9; then
  echo "$0: an earlier run is still at work; this one ends" >&2
  exit 6
fi

cd "$RECONCILER_REPOSITORY"
git pull --quiet --ff-only

code=0
case $task in
  drift)
    reconciler plan "$specs" "${options[@]}" --detailed-exitcode || code=$?
    ;;
  apply)
    reconciler apply "$specs" "${options[@]}" --auto-approve --audit "$state/audit.jsonl" || code=$?
    [ "$code" -ne 4 ] || code=0 # what moved meanwhile is for the next run
    ;;
esac
exit "$code"
