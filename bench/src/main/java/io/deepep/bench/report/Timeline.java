package io.deepep.bench.report;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import jdk.jfr.consumer.RecordedEvent;

/**
 * Recorded calls as trace events, the JSON that Perfetto and Chrome's tracing open: a process for
 * each rank, in it a track for dispatch and one for combine.
 */
final class Timeline {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final double NANOS_PER_MICRO = 1e3;

    private final List<Call> calls = new ArrayList<>();

    /** What the file says of a call, but for its start. */
    private record Call(Instant start, int rank, ObjectNode facts) {}

    /** Adds an {@code io.deepep.Operation}. */
    void add(RecordedEvent event) {
        calls.add(new Call(event.getStartTime(), event.getInt("rank"), describe(event)));
    }

    boolean isEmpty() {
        return calls.isEmpty();
    }

    /** The file. */
    String json() {
        ObjectNode trace = JSON.createObjectNode();
        trace.put("displayTimeUnit", "ns");
        ArrayNode all = trace.putArray("traceEvents");
        calls.stream()
                .mapToInt(Call::rank)
                .distinct()
                .sorted()
                .forEach(
                        rank -> {
                            name(all, "process_name", rank, 0, "rank " + rank);
                            name(all, "thread_name", rank, 0, "dispatch");
                            name(all, "thread_name", rank, 1, "combine");
                        });
        // In microseconds since 1970, neighbours would seem to overlap.
        Instant first = Collections.min(calls, Comparator.comparing(Call::start)).start();
        for (Call call : calls) {
            call.facts.put("ts", micros(Duration.between(first, call.start)));
            all.add(call.facts);
        }
        return trace.toString();
    }

    private static ObjectNode describe(RecordedEvent event) {
        ObjectNode call = JSON.createObjectNode();
        call.put("name", event.getString("mode") + " " + event.getString("operation"));
        call.put("cat", event.getString("format"));
        call.put("ph", "X");
        call.put("dur", micros(event.getDuration()));
        call.put("pid", event.getInt("rank"));
        call.put("tid", "combine".equals(event.getString("operation")) ? 1 : 0);
        ObjectNode facts = call.putObject("args");
        facts.put("call", event.getLong("call"));
        for (String field : new String[] {"tokens", "receivedRows", "nvlinkBytes", "rdmaBytes"}) {
            facts.put(field, event.getLong(field));
        }
        String error = event.getString("error");
        if (error != null) {
            facts.put("error", error);
        }
        return call;
    }

    private static double micros(Duration time) {
        return time.toNanos() / NANOS_PER_MICRO;
    }

    private static void name(ArrayNode all, String kind, int rank, int track, String name) {
        ObjectNode event = all.addObject();
        event.put("name", kind).put("ph", "M").put("pid", rank).put("tid", track);
        event.putObject("args").put("name", name);
    }
}
