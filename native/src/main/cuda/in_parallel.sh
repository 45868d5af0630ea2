# To be sourced. in_parallel COMMAND ARGUMENT...: runs COMMAND with each ARGUMENT, as many at once as there are
# processors; fails if one did, once all are done.
in_parallel() {
    local command=$1 argument failed=0 running=0
    shift
    for argument in "$@"; do
        "$command" "$argument" &
        running=$((running + 1))
        if [ "$running" -ge "$(getconf _NPROCESSORS_ONLN)" ]; then
            wait -n || failed=1
            running=$((running - 1))
        fi
    done
    while [ "$running" -gt 0 ]; do
        wait -n || failed=1
        running=$((running - 1))
    done
    return $failed
}
