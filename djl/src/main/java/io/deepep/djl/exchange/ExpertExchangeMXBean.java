package io.deepep.djl.exchange;

/**
 * The counters of an {@link ExpertExchange}, on the platform's MBean server as {@code
 * io.deepep:type=ExpertExchange,rank=...,id=...}. They are visible across class loaders, to DJL
 * Serving's plugin and to any JMX client.
 */
public interface ExpertExchangeMXBean {
    /** The rank of the exchange. */
    int getRank();

    /** Number of ranks of the group. */
    int getNumRanks();

    /** {@code host}, or {@code cuda:} and the number of the GPU. */
    String getDevice();

    /** {@code normal} or {@code low-latency}. */
    String getMode();

    /** Whether the last exchange succeeded; true before the first. */
    boolean isHealthy();

    /** The failure of the last exchange; empty if it succeeded. */
    String getLastFailure();

    /** Number of exchanges that were begun, those of replayed graphs included. */
    long getExchanges();

    /** Number of exchanges that failed. */
    long getFailures();

    /** Number of this rank's tokens that were dispatched. */
    long getTokensSent();

    /**
     * Number of rows that this rank's experts computed. In low-latency mode, experts may compute
     * rows that the host does not know of; these are counted when the exchange is awaited or
     * closed.
     */
    long getRowsReceived();

    /** Number of rows that each of this rank's experts computed, [E/R]. */
    long[] getExpertRows();

    /**
     * Nanoseconds that the calling thread spent in exchanges, including experts. Replays of a graph
     * add nothing, here and to the next.
     */
    long getNanos();

    /** Nanoseconds that the calling thread spent in this rank's experts. */
    long getExpertNanos();
}
