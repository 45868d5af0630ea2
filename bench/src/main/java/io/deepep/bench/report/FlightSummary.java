package io.deepep.bench.report;

import io.deepep.GroupLimits;
import io.deepep.bench.measure.Samples;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.UsageException;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;

/** Sums of the library's events in flight recordings. */
final class FlightSummary {
    /** By operation and format. */
    final Map<String, Calls> calls = new TreeMap<>();

    /** By operation: bytes that went from rank to rank. */
    final Map<String, long[][]> traffic = new TreeMap<>();

    /** By mode: tokens of each expert. */
    final Map<String, long[]> experts = new TreeMap<>();

    /** By mode: the experts of which there is a recording. */
    private final Map<String, BitSet> recorded = new TreeMap<>();

    /** How many ranks these experts are on: those up to the last of which there is a recording. */
    int ranksOfExperts;

    /** Nanoseconds: [waiting rank][rank waited for], or empty if no wait was measured. */
    long[][] waits = new long[0][0];

    /** Every call. */
    final Timeline timeline = new Timeline();

    private final int warmups;

    /**
     * An empty one.
     *
     * @param warmups calls of each operation that a rank's times leave out, the first ones
     */
    FlightSummary(int warmups) {
        this.warmups = warmups;
    }

    /** What one call took. */
    private record Span(Instant start, long hostNanos, long deviceNanos) {}

    /** Calls that times leave out, of all operations and ranks. */
    long skipped() {
        return calls.values().stream().mapToLong(Calls::skipped).sum();
    }

    /** All calls of one operation, over all ranks. */
    static final class Calls {
        final String name;
        long count;
        long failed;
        long unfinished;
        long nvlinkBytes;
        long rdmaBytes;

        private final int warmups;
        private final Map<Integer, List<Span>> byRank = new TreeMap<>();

        private Calls(String name, int warmups) {
            this.name = name;
            this.warmups = warmups;
        }

        /** Time of host threads in the call, microseconds; NaN without calls. */
        double hostMicros(double percent) {
            return percentile(spans().mapToLong(Span::hostNanos), percent);
        }

        /** Time of its kernels, microseconds; NaN where none was measured. */
        double deviceMicros(double percent) {
            return percentile(spans().mapToLong(Span::deviceNanos).filter(n -> n > 0), percent);
        }

        /** All but the first of each rank. */
        private Stream<Span> spans() {
            Comparator<Span> byStart = Comparator.comparing(Span::start);
            return byRank.values().stream()
                    .flatMap(all -> all.stream().sorted(byStart).skip(skipped(all)));
        }

        /** Half of the calls stay, however few there are. */
        private int skipped(List<Span> ofRank) {
            return Math.min(warmups, ofRank.size() / 2);
        }

        private long skipped() {
            return byRank.values().stream().mapToLong(this::skipped).sum();
        }

        private static double percentile(LongStream nanos, double percent) {
            long[] all = nanos.toArray();
            return all.length == 0 ? Double.NaN : Samples.of(all).percentileMicros(percent);
        }

        private void add(RecordedEvent event) {
            count++;
            byRank.computeIfAbsent(rank(event, "rank"), rank -> new ArrayList<>())
                    .add(
                            new Span(
                                    event.getStartTime(),
                                    nanos(event, "beginTime") + nanos(event, "completeTime"),
                                    nanos(event, "deviceTime")));
            boolean error = event.getString("error") != null;
            failed += error ? 1 : 0;
            unfinished += error || event.getBoolean("finished") ? 0 : 1;
            nvlinkBytes += Math.max(0, event.getLong("nvlinkBytes"));
            rdmaBytes += Math.max(0, event.getLong("rdmaBytes"));
        }
    }

    /** Reads a recording, one of several of the same job. */
    void add(Path file) {
        try (RecordingFile recording = new RecordingFile(file)) {
            while (recording.hasMoreEvents()) {
                add(recording.readEvent());
            }
        } catch (IOException unreadable) {
            throw new UsageException(
                    "cannot read " + file + " as a flight recording: " + unreadable.getMessage());
        } catch (RuntimeException
                | InternalError damaged) { // Java has one for every kind of damage
            throw new UsageException(
                    "%s is a damaged recording, or one of another version of this library (%s)"
                            .formatted(file, damaged));
        }
    }

    private void add(RecordedEvent event) {
        switch (event.getEventType().getName()) {
            case "io.deepep.Operation" -> {
                timeline.add(event);
                calls.computeIfAbsent(
                                operation(event) + " " + event.getString("format"),
                                name -> new Calls(name, warmups))
                        .add(event);
            }
            case "io.deepep.Peer" -> addPeer(event);
            case "io.deepep.ExpertLoad" -> addExpert(event);
            default -> {} // events of others
        }
    }

    private static String operation(RecordedEvent event) {
        return event.getString("mode") + " " + event.getString("operation");
    }

    /** 0 where the event has no such time. */
    private static long nanos(RecordedEvent event, String field) {
        Duration duration = event.getDuration(field);
        return duration.toSeconds() == Long.MIN_VALUE ? 0 : duration.toNanos();
    }

    private static int rank(RecordedEvent event, String field) {
        return index(event, field, GroupLimits.MAX_RANKS);
    }

    /** A number that sizes arrays. */
    private static int index(RecordedEvent event, String field, int most) {
        return Objects.checkIndex(event.getInt(field), most);
    }

    private void addPeer(RecordedEvent event) {
        int rank = rank(event, "rank");
        int peer = rank(event, "peer");
        long sent = event.getLong("sentBytes");
        if (sent >= 0) {
            long[][] known = traffic.getOrDefault(operation(event), new long[0][0]);
            traffic.put(operation(event), with(known, rank, peer, sent));
        }
        if (event.getDuration("waitTime").toSeconds() != Long.MIN_VALUE) {
            waits = with(waits, rank, peer, nanos(event, "waitTime"));
        }
    }

    /** The matrix with {@code value} added, made larger if need be. */
    private static long[][] with(long[][] matrix, int row, int column, long value) {
        int size = Math.max(matrix.length, Math.max(row, column) + 1);
        long[][] result = matrix;
        if (size > matrix.length) {
            result = new long[size][size];
            for (int i = 0; i < matrix.length; i++) {
                System.arraycopy(matrix[i], 0, result[i], 0, matrix.length);
            }
        }
        result[row][column] += value;
        return result;
    }

    private void addExpert(RecordedEvent event) {
        int expert = index(event, "expert", Job.MOST_EXPERTS);
        long[] counts = experts.getOrDefault(event.getString("mode"), new long[0]);
        if (expert >= counts.length) {
            counts = Arrays.copyOf(counts, expert + 1);
        }
        counts[expert] += event.getInt("tokens");
        recorded.computeIfAbsent(event.getString("mode"), _ -> new BitSet()).set(expert);
        ranksOfExperts = Math.max(ranksOfExperts, rank(event, "rank") + 1);
        experts.put(event.getString("mode"), counts);
    }

    /** What to say of experts that count as 0 because there is no recording of their ranks. */
    String absentExperts(String mode) {
        int absent = experts.get(mode).length - recorded.get(mode).cardinality();
        return absent == 0
                ? ""
                : " %s experts have no recording and count as 0; give the recordings of all ranks."
                        .formatted(absent);
    }

    /** Nanoseconds that each rank kept the others waiting. */
    long[] caused() {
        long[] caused = new long[waits.length];
        for (long[] row : waits) {
            Arrays.setAll(caused, peer -> caused[peer] + row[peer]);
        }
        return caused;
    }
}
