package io.deepep.bench.report;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import jdk.jfr.consumer.RecordedEvent;

/**
 * Recorded calls as trace events, the JSON that Perfetto and Chrome's tracing open: a process for
 * each rank, in it a track for dispatch and one for combine.
 */
final class Timeline {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final double NANOS_PER_MICRO = 1e3;

    private final ArrayNode events = JSON.createArrayNode();
    private final List<Instant> starts = new ArrayList<>();
    private final TreeSet<Integer> ranks = new TreeSet<>();

    /** Adds an {@code io.deepep.Operation}. */
    void add(RecordedEvent event) {
        int rank = event.getInt("rank");
        ranks.add(rank);
        starts.add(event.getStartTime());
        ObjectNode call = events.addObject();
        call.put("name", event.getString("mode") + " " + event.getString("operation"));
        call.put("cat", event.getString("format"));
        call.put("ph", "X");
        call.put("dur", event.getDuration().toNanos() / NANOS_PER_MICRO);
        call.put("pid", rank);
        call.put("tid", event.getString("operation").equals("combine") ? 1 : 0);
        ObjectNode facts = call.putObject("args");
        facts.put("call", event.getLong("call"));
        for (String field : new String[] {"tokens", "receivedRows", "nvlinkBytes", "rdmaBytes"}) {
            facts.put(field, event.getLong(field));
        }
        String error = event.getString("error");
        if (error != null) {
            facts.put("error", error);
        }
    }

    /** From the first call on: in microseconds since 1970, neighbours would seem to overlap. */
    private void placeInTime() {
        Instant first = Collections.min(starts);
        for (int i = 0; i < starts.size(); i++) {
            double micros = ChronoUnit.NANOS.between(first, starts.get(i)) / NANOS_PER_MICRO;
            ((ObjectNode) events.get(i)).put("ts", micros);
        }
    }

    boolean isEmpty() {
        return ranks.isEmpty();
    }

    /** The file. */
    String json() {
        ObjectNode trace = JSON.createObjectNode();
        trace.put("displayTimeUnit", "ns");
        ArrayNode all = trace.putArray("traceEvents");
        for (int rank : ranks) {
            name(all, "process_name", rank, 0, "rank " + rank);
            name(all, "thread_name", rank, 0, "dispatch");
            name(all, "thread_name", rank, 1, "combine");
        }
        placeInTime();
        all.addAll(events);
        return trace.toString();
    }

    private static void name(ArrayNode all, String kind, int rank, int track, String name) {
        ObjectNode event = all.addObject();
        event.put("name", kind).put("ph", "M").put("pid", rank).put("tid", track);
        event.putObject("args").put("name", name);
    }
}
