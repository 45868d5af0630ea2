package io.deepep.lowlatency.host;

import io.deepep.host.HostHeap;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.CallWord;
import io.deepep.lowlatency.CombineWord;
import io.deepep.lowlatency.DispatchWord;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.KernelEnum;
import java.lang.foreign.ValueLayout;

/** Headers of one kind of call: written at the peers, read here. */
final class Headers {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    private final Kind kind;
    private final LowLatencyLayout layout;
    private final HostHeap rdma;
    private final int rank;

    Headers(Kind kind, HostLowLatencyKernels kernels) {
        this.kind = kind;
        this.layout = kernels.layout;
        this.rdma = kernels.rdma;
        this.rank = kernels.rank;
    }

    /** The word that a rank stores before its rows, by which peers see that it has begun. */
    static int firstStored(Kind kind) {
        return kind == Kind.DISPATCH ? DispatchWord.FORMAT.value() : CombineWord.ROW_FORMAT.value();
    }

    /** Stores that word, before everything else that belongs to the call. */
    void begin(int peer, int epoch, int value) {
        // relaxed would do; pairs with Peers.isLate
        rdma.signal(
                peer,
                layout.word(kind, epoch & 1, rank, firstStored(kind)),
                CallWord.of(epoch, value));
    }

    /** Stores a word that is neither that nor the first. */
    void put(int peer, int epoch, int word, int value) {
        long at = layout.word(kind, epoch & 1, rank, word);
        rdma.of(peer).set(LONG, at, CallWord.of(epoch, value));
    }

    void put(int peer, int epoch, KernelEnum word, int value) {
        put(peer, epoch, word.value(), value);
    }

    /** Stores a 64-bit value in two words. */
    void putLong(int peer, int epoch, KernelEnum low, long value) {
        put(peer, epoch, low.value(), (int) value);
        put(peer, epoch, low.value() + 1, (int) (value >>> Integer.SIZE));
    }

    /** Stores the first word, after everything that belongs to the call. */
    void announce(int peer, int epoch, int value) {
        // release; pairs with the acquire in Peers.await
        rdma.signal(peer, layout.word(kind, epoch & 1, rank, 0), CallWord.of(epoch, value));
    }

    /** A word of the header that {@code source} has announced for a call. */
    int get(long call, int source, int word) {
        int epoch = CallEpoch.of(call);
        long stored = rdma.local().get(LONG, layout.word(kind, epoch & 1, source, word));
        if (CallWord.epoch(stored) != epoch) {
            throw new IllegalStateException(
                    "word %s from rank %s is not of %s %s"
                            .formatted(word, source, kind.text(), call));
        }
        return CallWord.value(stored);
    }

    int get(long call, int source, KernelEnum word) {
        return get(call, source, word.value());
    }

    long getLong(long call, int source, KernelEnum low) {
        return (get(call, source, low.value()) & 0xffffffffL)
                | ((long) get(call, source, low.value() + 1) << Integer.SIZE);
    }
}
