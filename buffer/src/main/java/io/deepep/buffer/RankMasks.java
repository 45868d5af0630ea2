package io.deepep.buffer;

import static io.deepep.observe.CallKind.NORMAL_COMBINE;
import static io.deepep.observe.CallKind.NORMAL_DISPATCH;

import io.deepep.BufferOptions;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.observe.CallKind;
import java.util.function.Consumer;

/**
 * The masks of one rank: changed by hand, and because of calls that fail. One thread at a time asks
 * or changes them, as the event of a failed call may be asked on any thread.
 */
final class RankMasks {
    private static final System.Logger LOG = System.getLogger(RankMasks.class.getName());

    private final BufferOptions options;
    private final Resources resources;
    private final Consumer<Throwable> fail;
    private boolean ended;

    /**
     * Those of a buffer.
     *
     * @param fail makes the buffer refuse further calls
     */
    RankMasks(BufferOptions options, Resources resources, Consumer<Throwable> fail) {
        this.options = options;
        this.resources = resources;
        this.fail = fail;
    }

    synchronized void update(int rank, boolean masked) {
        resources.updateMask(rank, masked);
    }

    /**
     * Notes a time-out, and returns it with the name of whom the group knows to be gone. Normal
     * mode may go on without that rank from the next call on. If it is this rank that was too late,
     * nobody is to be masked: its calls fail until it is in step again.
     */
    synchronized DeepEpTimeoutException fail(DeepEpTimeoutException late, CallKind kind) {
        DeepEpTimeoutException named = late.blaming(resources.departures().list());
        if (ended) {
            return named; // the event of a call may be asked when masks and network are gone
        }
        resources.networkFailure().ifPresent(named::addSuppressed);
        boolean goesOn = changeAfter(kind) && named.peer() != options.topology().rank();
        if (!goesOn) {
            fail.accept(named);
        } else if (!named.isPeerAhead()) {
            leaveOut(named.peer());
            leaveOut(resources.normal().takeSuspects());
        }
        return named;
    }

    /**
     * Where ranks that are lost together were masked differently, the calls that the others refuse
     * for that tell whom: once, not with another time-out. Nothing where no call was refused.
     */
    void adopt(CallKind kind) {
        if (changeAfter(kind)) {
            int[] suspects = resources.normal().takeSuspects();
            if (suspects.length > 0) { // else without a lock: asked after each call
                leaveOut(suspects);
            }
        }
    }

    private boolean changeAfter(CallKind kind) {
        boolean normal = kind == NORMAL_DISPATCH || kind == NORMAL_COMBINE;
        return normal && options.maskTimedOutRanks() && resources.normal().canMask();
    }

    /** Each is logged, as the exception of the call names one rank at most. */
    private synchronized void leaveOut(int... ranks) {
        int own = options.topology().rank();
        for (int rank : ranks) {
            if (ended || rank == own) {
                continue;
            }
            boolean isMasked = resources.normal().queryMask()[rank] != 0;
            if (!isMasked) {
                LOG.log(
                        System.Logger.Level.WARNING,
                        "rank %s masks rank %s: it was lost in a call of normal mode"
                                .formatted(own, rank));
            }
            resources.updateMask(rank, true);
        }
    }

    /** Once nobody else is in the buffer: from here on, nothing is done that needs its memory. */
    synchronized void end() {
        ended = true;
    }
}
