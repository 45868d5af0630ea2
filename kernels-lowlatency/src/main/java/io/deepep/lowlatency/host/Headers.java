package io.deepep.lowlatency.host;

import io.deepep.error.RoutingException;
import io.deepep.host.HostHeap;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.CombineWord;
import io.deepep.lowlatency.DispatchWord;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyErrors;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.FaultCode;
import io.deepep.spi.KernelEnum;
import io.deepep.spi.Word;
import java.lang.foreign.ValueLayout;

/** Headers of one kind of call: written at the peers, read here. */
final class Headers {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    private final Kind kind;
    private final LowLatencyLayout layout;
    private final HostHeap rdma;
    private final int rank;
    private final int maxTokens;

    /** What all ranks throw that conclude alike. */
    final LowLatencyErrors errors;

    /** The status of a rank's selections; behind it come token, k and value of the culprit. */
    private final int statusWord;

    Headers(Kind kind, HostLowLatencyKernels kernels) {
        this.kind = kind;
        this.layout = kernels.layout;
        this.rdma = kernels.rdma;
        this.rank = kernels.rank;
        this.maxTokens = kernels.limits.maxTokens();
        this.errors = new LowLatencyErrors(kind, rank, kernels.limits.numExperts());
        this.statusWord =
                kind == Kind.DISPATCH
                        ? DispatchWord.STATUS.value()
                        : CombineWord.COMBINE_STATUS.value();
    }

    /** The word that a rank stores before its rows, by which peers see that it has begun. */
    static int firstStored(Kind kind) {
        return kind == Kind.DISPATCH ? DispatchWord.FORMAT.value() : CombineWord.ROW_FORMAT.value();
    }

    /** Stores that word, before everything else that belongs to the call. */
    void begin(int peer, int epoch, int value) {
        // relaxed would do; pairs with Peers.isLate
        rdma.signal(
                peer, layout.word(kind, epoch & 1, rank, firstStored(kind)), Word.of(epoch, value));
    }

    /** Stores a word that is neither that nor the first. */
    void put(int peer, int epoch, int word, int value) {
        long at = layout.word(kind, epoch & 1, rank, word);
        rdma.of(peer).set(LONG, at, Word.of(epoch, value));
    }

    void put(int peer, int epoch, KernelEnum word, int value) {
        put(peer, epoch, word.value(), value);
    }

    /** Stores what a status is of, in the words behind it. */
    void putCulprit(int peer, int epoch, int token, int k, long value) {
        put(peer, epoch, statusWord + 1, token);
        put(peer, epoch, statusWord + 2, k);
        put(peer, epoch, statusWord + 3, (int) value);
        put(peer, epoch, statusWord + 4, (int) (value >>> Integer.SIZE));
    }

    /** Stores the first word, after everything that belongs to the call. */
    void announce(int peer, int epoch, int value) {
        // release; pairs with the acquire in Peers.await
        rdma.signal(peer, layout.word(kind, epoch & 1, rank, 0), Word.of(epoch, value));
    }

    /** A word of the header that {@code source} has announced for a call. */
    int get(long call, int source, int word) {
        int epoch = CallEpoch.of(call);
        long stored = rdma.local().get(LONG, layout.word(kind, epoch & 1, source, word));
        if (Word.epoch(stored) != epoch) {
            throw new IllegalStateException(
                    "word %s from rank %s is not of %s %s"
                            .formatted(word, source, kind.text(), call));
        }
        return Word.value(stored);
    }

    int get(long call, int source, KernelEnum word) {
        return get(call, source, word.value());
    }

    /** Requires of the ranks that came what this rank says in a word itself. */
    void requireSame(long call, boolean[] came, KernelEnum word, int mine) {
        for (int source = 0; source < came.length; source++) {
            int theirs = came[source] ? get(call, source, word) : mine;
            if (theirs != mine) {
                throw errors.mismatch(word.value(), mine, source, theirs);
            }
        }
    }

    /**
     * Checks what the ranks that came say of their own selections.
     *
     * @throws RoutingException if those of one are not valid
     */
    void requireValidSelections(long call, boolean[] came) {
        for (int source = 0; source < came.length; source++) {
            FaultCode status =
                    came[source] ? FaultCode.of(get(call, source, statusWord)) : FaultCode.OK;
            if (status != FaultCode.OK) {
                int token = get(call, source, statusWord + 1);
                int k = get(call, source, statusWord + 2);
                long low = Integer.toUnsignedLong(get(call, source, statusWord + 3));
                long value = (long) get(call, source, statusWord + 4) << Integer.SIZE | low;
                throw errors.ofSelections(status, source, token, k, value, maxTokens);
            }
        }
    }
}
