package io.deepep.bench.lowlatency;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.deepep.bench.measure.PeerFigures;

/**
 * What a decoding step took, a layer: medians, of the slowest rank, in microseconds.
 *
 * @param network what carried rows between nodes of GPUs; left out where there is none
 * @param preReduced whether ranks sum a token's rows before they send them
 * @param combineFormat how its rows travel: bf16, fp8 or logfmt
 * @param layers of a step
 * @param times of a step
 * @param bytesPerCall garbage of a call
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
record DecodeRecord(
        String backend,
        String gpu,
        int gpus,
        int ranks,
        int nodes,
        String network,
        int tokens,
        int hidden,
        int topk,
        int experts,
        int sms,
        boolean preReduced,
        String combineFormat,
        int layers,
        int repeats,
        @JsonUnwrapped Times times,
        double bytesPerCall,
        String driver,
        String version,
        String commit,
        String time) {
    /**
     * The times, a layer or a call.
     *
     * @param gpuMicros on the GPU alone, everything enqueued before it starts; left out on the host
     * @param launchedMicros from the host's first call until the results are there
     * @param graphMicros the step as a graph, everything on the GPU; left out on the host
     * @param graphLaunchedMicros the same from the host's launch of it
     * @param callMicros the host's time for a call of the buffer; left out on the host backend,
     *     where calls do the work
     * @param bareLaunchMicros the host's time for launching an empty kernel and recording an event,
     *     which every call does too
     */
    @JsonInclude(JsonInclude.Include.NON_NULL)
    record Times(
            Double gpuMicros,
            double launchedMicros,
            Double graphMicros,
            Double graphLaunchedMicros,
            Double callMicros,
            Double bareLaunchMicros) {}

    /** How peers' figures name this: the time of a layer as a graph, on the host as launched. */
    PeerFigures.Figure asFigure() {
        return new PeerFigures.Figure(
                null,
                preReduced ? "decode-pre-reduced" : "decode",
                combineFormat,
                ranks,
                nodes,
                tokens,
                hidden,
                topk,
                experts,
                sms,
                times.graphMicros == null ? times.launchedMicros : times.graphMicros);
    }
}
