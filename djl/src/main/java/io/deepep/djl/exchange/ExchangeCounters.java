package io.deepep.djl.exchange;

import io.deepep.Buffer;
import io.deepep.djl.jmx.Beans;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.IntStream;
import javax.management.ObjectName;

/** Written by the exchange's thread, read by whoever asks. */
final class ExchangeCounters implements ExpertExchangeMXBean, AutoCloseable {
    private final Buffer buffer;
    private final String mode;
    private final ObjectName name;
    private final AtomicLong exchanges = new AtomicLong();
    private final AtomicLong failures = new AtomicLong();
    private final AtomicLong tokensSent = new AtomicLong();
    private final AtomicLong rowsReceived = new AtomicLong();
    private final AtomicLong nanos = new AtomicLong();
    private final AtomicLong expertNanos = new AtomicLong();
    private volatile AtomicLongArray expertRows = new AtomicLongArray(0);
    private volatile String lastFailure = "";

    /** What goes into a graph; null if nothing does. Of the exchange's thread alone. */
    private Tally captured;

    /** Counters that are on the platform's MBean server until they are closed. */
    ExchangeCounters(Buffer buffer, String mode) {
        this.buffer = buffer;
        this.mode = mode;
        name = Beans.register("type=ExpertExchange,rank=" + buffer.topology().rank(), this);
    }

    /** The exchanges of a graph. */
    static final class Tally {
        private long numExchanges;
        private long numTokens;

        private Tally() {}
    }

    /** Exchanges from here on count when they are replayed, until {@link #endCapture}. */
    Tally beginCapture() {
        captured = new Tally();
        return captured;
    }

    void endCapture() {
        captured = null;
    }

    void replayed(Tally tally) {
        exchanges.addAndGet(tally.numExchanges);
        tokensSent.addAndGet(tally.numTokens);
        lastFailure = "";
    }

    void begun() {
        if (captured != null) {
            captured.numExchanges++;
            return;
        }
        exchanges.incrementAndGet();
    }

    void sent(long numTokens) {
        if (captured != null) {
            captured.numTokens += numTokens;
            return;
        }
        tokensSent.addAndGet(numTokens);
    }

    void experts(long spentNanos) {
        if (captured != null) {
            return;
        }
        expertNanos.addAndGet(spentNanos);
    }

    /** Experts have had so many rows each. */
    void rows(int[] counts) {
        AtomicLongArray perExpert = expertRows;
        if (perExpert.length() != counts.length) {
            // Layers of one exchange have as many experts; that of another model starts at 0.
            perExpert = new AtomicLongArray(counts.length);
            expertRows = perExpert;
        }
        for (int e = 0; e < counts.length; e++) {
            perExpert.addAndGet(e, counts[e]);
            rowsReceived.addAndGet(counts[e]);
        }
    }

    void ended(long spentNanos) {
        if (captured != null) {
            return;
        }
        nanos.addAndGet(spentNanos);
        lastFailure = "";
    }

    /** A capture that is refused is no failure: nothing was sent. */
    void failed(Throwable failure) {
        if (captured != null) {
            return;
        }
        failures.incrementAndGet();
        lastFailure = failure.toString();
    }

    @Override
    public int getRank() {
        return buffer.topology().rank();
    }

    @Override
    public int getNumRanks() {
        return buffer.topology().numRanks();
    }

    @Override
    public String getDevice() {
        return buffer.options().device().toString();
    }

    @Override
    public String getMode() {
        return mode;
    }

    @Override
    public boolean isHealthy() {
        return lastFailure.isEmpty();
    }

    @Override
    public String getLastFailure() {
        return lastFailure;
    }

    @Override
    public long getExchanges() {
        return exchanges.get();
    }

    @Override
    public long getFailures() {
        return failures.get();
    }

    @Override
    public long getTokensSent() {
        return tokensSent.get();
    }

    @Override
    public long getRowsReceived() {
        return rowsReceived.get();
    }

    @Override
    public long[] getExpertRows() {
        AtomicLongArray perExpert = expertRows;
        return IntStream.range(0, perExpert.length()).mapToLong(perExpert::get).toArray();
    }

    @Override
    public long getNanos() {
        return nanos.get();
    }

    @Override
    public long getExpertNanos() {
        return expertNanos.get();
    }

    @Override
    public void close() {
        Beans.unregister(name);
    }
}
