#!/usr/bin/env bash
# Runs the suites over the card in software on a GPU host, from an unpacked bundle with tests, as root. Prints how each
# part went and what the card carried. Exit code: 0 if all that ran passed.
#
#   suites.sh [-t TRANSPORTS] [-p PARTS] [-o FOLDER]
#
#   -t  transports, by commas: ibrc, ibdevx and ibgda of NVSHMEM, and own for Network.ibgda() (default: all)
#   -p  parts, by commas, as the table names them (default: all)
#   -o  where outputs and counters go (default: a new folder, which stays)
#
# Ranks that share a GPU run under NVIDIA's MPS: each part starts a daemon, because processes that are killed spoil it for
# others. If CUDA_MPS_PIPE_DIRECTORY is set, that daemon is used, with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE and
# CUDA_DEVICE_MAX_CONNECTIONS. CUDA_VISIBLE_DEVICES says which GPUs are used.
set -euo pipefail

card=$(cd "$(dirname "$0")" && pwd) bundle=$(cd "$(dirname "$0")/.." && pwd)
transports=ibrc,ibdevx,ibgda,own parts='' folder=''
while getopts t:p:o: option; do
    case $option in
        t) transports=$OPTARG ;;
        p) parts=$OPTARG ;;
        o) folder=$OPTARG ;;
        *) exit 2 ;;
    esac
done
[ -n "$folder" ] || folder=$(mktemp -d /tmp/deepep-suites-XXXXXX)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
# Names in CUDA_VISIBLE_DEVICES must be UUIDs: clients of MPS count the daemon's GPUs from 0.
num_gpus=$({ [ -n "${CUDA_VISIBLE_DEVICES:-}" ] && tr , '\n' <<< "$CUDA_VISIBLE_DEVICES" || nvidia-smi --list-gpus; } | wc -l)
failed=0 rows=0

connections=${CUDA_DEVICE_MAX_CONNECTIONS:-}

# Enough queue pairs for every buffer of a suite.
export NVSHMEM_IBGDA_NUM_RC_PER_PE=${NVSHMEM_IBGDA_NUM_RC_PER_PE:-32} NVSHMEM_QP_DEPTH=${NVSHMEM_QP_DEPTH:-1024}

line() { printf '%-8s %-22s %7s %7s %8s %9s %9s %10s %12s %14s\n' "$@"; }

start_daemon() { # PROCESSES
    CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d)
    CUDA_MPS_LOG_DIRECTORY=$CUDA_MPS_PIPE_DIRECTORY/log
    # NVSHMEM has teams if the shares of a GPU's processes are at most 100 together.
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$((100 * num_gpus / $1))
    # MPS has about 96 hardware queues for all processes.
    export CUDA_DEVICE_MAX_CONNECTIONS=${connections:-8}
    export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
    nvidia-cuda-mps-control -d > "$CUDA_MPS_PIPE_DIRECTORY/started" 2>&1
}

end_daemon() {
    echo quit | timeout 20 nvidia-cuda-mps-control > /dev/null 2>&1 || true
    rm -rf "$CUDA_MPS_PIPE_DIRECTORY"
    [ -n "$connections" ] || unset CUDA_DEVICE_MAX_CONNECTIONS
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
}

# The cards' counts of a kind: only processes that have ended have told all.
counted() { # FOLDER NAME
    cat "$1"/counters-* "$1"/*/counters-* 2>/dev/null |
        awk -v name="$2" '/^sum / { for (i = 2; i <= NF; i++) if (split($i, pair, "=") == 2 && pair[1] == name) n += pair[2] }
            END { printf "%d", n }'
}

# Numbers of tests, as rank 0 or the only process says them: of JUnit's summary, or the last line of a command. Other
# ranks' lines may come after them.
told() { # FILE successful|failed passed|failed
    sed -nE -e "s/^(\[0\] )?\[ *([0-9]+) tests $2 *\]\$/\2/p" -e "s/^(\[0\] )?([^[].*[^0-9])?([0-9]+) $3\b.*\$/\3/p" "$1" | tail -1
}

# One row of the table. PROCESSES share the GPUs; 0 if not under MPS.
part() { # NAME PROCESSES LIMIT_S [-f FAULTS] COMMAND...
    local name=$1 processes=$2 limit=$3 faults='' begin=$SECONDS status=0 passed lost
    shift 3
    if [ "$1" = -f ]; then faults=$2 && shift 2; fi
    case ",${parts:-$name}," in *",$name,"*) ;; *) return 0 ;; esac
    local out=$folder/$transport-$name.log cards=$folder/$transport-$name daemon=''
    if [ "$processes" -gt "$num_gpus" ] && [ -z "${CUDA_MPS_PIPE_DIRECTORY:-}" ]; then daemon=own; fi
    rm -rf "$cards"
    if [ -n "$daemon" ]; then start_daemon "$processes"; fi
    timeout "$limit" "$card/with-card.sh" -f "$faults" -o "$cards" -- "$@" > "$out" 2>&1 </dev/null || status=$?
    if [ -n "$daemon" ]; then end_daemon; fi
    passed=$(told "$out" successful passed) lost=$(told "$out" failed failed)
    if [ "$status" = 0 ]; then passed=${passed:-1}; fi # a command that is no test
    # What ran nothing, or carried nothing, has not passed.
    if [ "$status" != 0 ] || [ "${lost:-0}" != 0 ] || [ "${passed:-0}" = 0 ] || [ "$(counted "$cards" bytes)" = 0 ]; then
        failed=1
        [ "$status" != 0 ] && lost="${lost:-} ($status)"
    fi
    rows=$((rows + 1))
    line "$transport" "$name" "${passed:--}" "${lost:-0}" $((SECONDS - begin)) \
        "$(counted "$cards" writes)" $(($(counted "$cards" atomics) + $(counted "$cards" inline))) \
        "$(counted "$cards" doorbells)" "$(counted "$cards" completions)" "$(counted "$cards" bytes)"
}

ranks() { # NUMBER: what starts so many
    launch=("$bundle/bin/deepep" launch -n "$1" --)
}

# With so few tokens that the card, which is a thread, carries them soon.
command() { # COMMAND NODES RANKS_PER_NODE OPTIONS...
    local name=$1-$2x$3 test=("$bundle/bin/deepep" "$1" --backend cuda --nodes "$2" --ranks-per-node "$3" "${@:4}")
    if [ "$transport" = own ]; then
        part "$name" 0 300 "${test[@]}" --network ibgda
    else
        ranks $(($2 * $3))
        part "$name" $(($2 * $3)) 300 "${launch[@]}" "${test[@]}" --network nvshmem --transport "$transport" --pure-rdma
    fi
}

# Of four ranks, or of as many as each case asks for.
suite() { # NAME LIMIT_S [-f FAULTS] ARGUMENTS OF deepep-tests...
    local name=$1 limit=$2 faults=()
    shift 2
    if [ "$1" = -f ]; then faults=(-f "$2") && shift 2; fi
    if [ "$transport" = own ]; then
        DEEPEP_JAVA_OPTS="-Ddeepep.backends=cuda-ibgda -Ddeepep.require=cuda $more" \
            part "$name" 0 "$limit" "${faults[@]}" "$bundle/bin/deepep-tests" "$@"
    else
        ranks 4
        DEEPEP_JAVA_OPTS="-Ddeepep.backends=cuda-nvshmem -Ddeepep.require=cuda -Ddeepep.transport=$transport -Ddeepep.ranksPerProcess=1 $more" \
            part "$name" 4 "$limit" "${faults[@]}" "${launch[@]}" "$bundle/bin/deepep-tests" "$@"
    fi
}

# Tests that start processes of their own.
starter() { # NAME PROCESSES LIMIT_S ARGUMENTS OF deepep-tests...
    local network="-Ddeepep.backends=cuda-nvshmem -Ddeepep.transport=$transport"
    if [ "$transport" = own ]; then network=-Ddeepep.backends=cuda-ibgda; fi
    DEEPEP_JAVA_OPTS="$network -Ddeepep.require=cuda $more" \
        part "$1" "$2" "$3" "$bundle/bin/deepep-tests" "${@:4}"
}

suites=io.deepep.testkit.conformance more=''
line transport part passed failed seconds writes signals doorbells completions bytes
for transport in ${transports//,/ }; do
    for shape in '2 2' '4 1' '2 4'; do
        # shellcheck disable=SC2086 # two numbers
        command test-internode $shape --num-tokens 256 --hidden 2048 --sms 6
        # shellcheck disable=SC2086
        command test-low-latency $shape --num-tokens 32 --hidden 2048
    done
    if [ "$transport" != own ]; then
        ranks 2
        part put 2 120 "${launch[@]}" "$bundle/bin/deepep" bench put --network nvshmem --transport "$transport" \
            --sms 4 --sizes 1024,65536 --warmups 0 --repeats 2
    fi
    suite bytes 100 -c io.deepep.bench.NetworkBytesTest
    suite normal 300 -p $suites.normal -n '.*Conformance' -N '.*(Timeout|Large)Conformance'
    suite normal-time-outs 400 -c $suites.normal.NormalTimeoutConformance
    more=-Ddeepep.testTimeout=8 # of which a case with ranks that make different calls waits 28 parts
    suite low-latency 500 -p $suites.lowlatency -n '.*Conformance' -N '.*(Timeout|Large)Conformance'
    more=''
    suite low-latency-time-outs 400 -c $suites.lowlatency.LowLatencyTimeoutConformance
    if [ "$transport" = own ]; then soak=Ibgda; else soak=Nvshmem; fi
    more=-Ddeepep.soak=5000
    suite soak 500 -f 'delay 20' -c io.deepep.bench.${soak}LowLatencySoakTest
    more=''
    # Without kills: over NVSHMEM no process goes on once another has died.
    if [ "$transport" != own ]; then
        part chaos 4 300 "$bundle/bin/deepep" chaos --backend cuda --ranks 4 --ranks-per-node 2 --ranks-are processes \
            --network nvshmem --transport "$transport" --pure-rdma --actions pause,throw,slow --trials 8 --groups 1 --seed 5
    fi
    # NVSHMEM's proxy ends a process in which a queue of these fails.
    case $transport in ibrc | ibdevx) continue ;; esac
    starter killed-rank 0 200 -c io.deepep.buffer.KilledRankTest
    more='-Ddeepep.faults=60 -Ddeepep.faultsAtOnce=3'
    starter faults 9 900 -c io.deepep.buffer.NetworkFaultsTest
    more=''
done
if [ "$rows" = 0 ]; then
    echo "no part of -t $transports is among -p $parts" >&2
    exit 2
fi
echo "outputs and counters: $folder"
exit $failed
