package io.deepep.djl.decoder;

/**
 * The state of a {@link DecoderService}, on the platform's MBean server as {@code
 * io.deepep:type=DecoderService,id=...} from its start until it is closed. It stays there when the
 * ranks have failed, although their exchanges do not.
 */
public interface DecoderServiceMXBean {
    /** Number of ranks. */
    int getNumRanks();

    /** Whether requests are served; false once a rank has failed. */
    boolean isHealthy();

    /** The failure that ended the ranks; empty if there is none. */
    String getLastFailure();

    /** Requests whose prompts have slots. */
    int getRunningRequests();

    /** Requests that wait for slots: the ranks have too few of them if this stays above 0. */
    int getWaitingRequests();
}
