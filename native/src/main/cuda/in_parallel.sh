# To be sourced. in_parallel COMMAND ARGUMENT...: runs COMMAND with each ARGUMENT, as many at once as there are
# processors; fails if one did, once all are done.
in_parallel() {
    local command=$1 argument child running=0 failed=0
    local children=()
    shift
    for argument in "$@"; do
        "$command" "$argument" &
        children+=($!)
        running=$((running + 1))
        if [ "$running" -ge "$(getconf _NPROCESSORS_ONLN)" ]; then
            # This only makes room. Its status can be 127, for no child, if all have ended before it looks.
            wait -n || true
            running=$((running - 1))
        fi
    done
    for child in ${children[@]+"${children[@]}"}; do
        wait "$child" || failed=1
    done
    return $failed
}
