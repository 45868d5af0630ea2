package io.deepep.bench.run;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.deepep.Communicator;
import io.deepep.bench.text.Lines;
import io.deepep.testkit.oracle.OracleMismatch;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;

/**
 * This process as one rank of those that a launcher started. All processes do the same rounds of
 * work, and agree after each whether it went well.
 */
final class LaunchedRanks implements RankSource {
    /** Longer than any rank's check of its results takes more than another's. */
    private static final Duration PATIENCE = Duration.ofMinutes(10);

    private static final int MAX_TEXT = 10_000;

    private final Communicator communicator;

    LaunchedRanks(Communicator communicator) {
        this.communicator = communicator;
    }

    /** How a round went, from good to bad. */
    enum Kind {
        GOOD,
        WRONG_RESULT,
        OUT_OF_STEP;

        static Kind of(RankFailure failure) {
            if (failure == null) {
                return GOOD;
            }
            return failure.getCause() instanceof OracleMismatch ? WRONG_RESULT : OUT_OF_STEP;
        }
    }

    /** What a process says at the end of a round. */
    record Report(long nanos, Kind kind, String text) {}

    @Override
    public int numRanks() {
        return communicator.size();
    }

    @Override
    public List<Integer> localRanks() {
        return List.of(communicator.rank());
    }

    @Override
    public Communicator communicator(int rank) {
        return communicator;
    }

    @Override
    public long meet(long nanos, RankFailure failure) {
        Throwable cause = failure == null ? null : failure.getCause();
        String text = cause == null ? "" : String.valueOf(cause.getMessage());
        text = text.substring(0, Math.min(text.length(), MAX_TEXT));
        Report own = new Report(nanos, Kind.of(failure), text);
        List<Report> reports =
                communicator.allGather(Lines.write(own).getBytes(UTF_8), PATIENCE).stream()
                        .map(each -> Lines.read(new String(each, UTF_8), Report.class))
                        .toList();
        Kind worst = reports.stream().map(Report::kind).max(Kind::compareTo).orElseThrow();
        if (worst == Kind.GOOD) {
            return reports.stream().mapToLong(Report::nanos).max().orElseThrow();
        }
        if (own.kind() == worst) {
            throw failure;
        }
        int rank = reports.stream().map(Report::kind).toList().indexOf(worst);
        String theirs = reports.get(rank).text();
        throw new RankFailure(
                rank,
                worst == Kind.WRONG_RESULT
                        ? new OracleMismatch(theirs)
                        : new IllegalStateException(theirs));
    }

    @Override
    public long[] slowest(long[] nanos) {
        ByteBuffer own = ByteBuffer.allocate(Long.BYTES * nanos.length);
        own.asLongBuffer().put(nanos);
        long[] slowest = nanos.clone();
        for (byte[] message : communicator.allGather(own.array(), PATIENCE)) {
            LongBuffer theirs = ByteBuffer.wrap(message).asLongBuffer();
            Arrays.setAll(slowest, i -> Math.max(slowest[i], theirs.get(i)));
        }
        return slowest;
    }

    /** The group goes on: its exchanges have not failed. */
    @Override
    public void renew() {}

    /** The communicator belongs to {@link LaunchedGroup}. */
    @Override
    public void close() {}
}
