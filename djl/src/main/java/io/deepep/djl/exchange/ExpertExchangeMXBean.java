package io.deepep.djl.exchange;

/**
 * Counters of one {@link ExpertExchange}, on the platform's MBean server as {@code
 * io.deepep:type=ExpertExchange,rank=...,id=...}: seen across class loaders, by DJL Serving's
 * plugin and by any JMX client.
 */
public interface ExpertExchangeMXBean {
    /** This rank. */
    int getRank();

    /** Ranks of the group. */
    int getNumRanks();

    /** {@code host}, or {@code cuda:} and the number of the GPU. */
    String getDevice();

    /** {@code normal} or {@code low-latency}. */
    String getMode();

    /** Whether the last exchange succeeded; true before the first. */
    boolean isHealthy();

    /** What the last exchange failed with; empty if it did not. */
    String getLastFailure();

    /** Exchanges begun. */
    long getExchanges();

    /** Exchanges that failed. */
    long getFailures();

    /** Tokens of this rank that were dispatched. */
    long getTokensSent();

    /** Rows that this rank's experts computed. */
    long getRowsReceived();

    /** Rows that each of this rank's experts computed: [E/R], the load. */
    long[] getExpertRows();

    /** Nanoseconds of the calling thread in exchanges, experts included. */
    long getNanos();

    /** Of those, in this rank's experts. */
    long getExpertNanos();
}
