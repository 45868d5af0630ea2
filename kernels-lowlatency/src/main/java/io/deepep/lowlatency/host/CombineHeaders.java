package io.deepep.lowlatency.host;

import io.deepep.LowLatencyCombinePlan;
import io.deepep.Tensor;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.CombineWord;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyErrors;
import io.deepep.lowlatency.LowLatencyFormats;
import io.deepep.spi.FaultCode;
import java.lang.foreign.ValueLayout;

/**
 * What ranks announce with a combine: put by the sender after its rows, checked by every rank, so
 * that all reach the same verdict.
 */
final class CombineHeaders {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    private final Headers headers;
    private final LowLatencyErrors errors;
    private final int numRanks;
    private final int numExperts;

    CombineHeaders(HostLowLatencyKernels kernels, int numRanks) {
        this.headers = new Headers(Kind.COMBINE, kernels);
        this.numRanks = numRanks;
        this.numExperts = kernels.limits.numExperts();
        this.errors = new LowLatencyErrors(Kind.COMBINE, kernels.rank, numExperts);
    }

    LowLatencyErrors errors() {
        return errors;
    }

    /** Tells {@code owner} that this rank has begun. */
    void begin(int owner, long call, LowLatencyCombinePlan plan) {
        headers.begin(owner, CallEpoch.of(call), LowLatencyFormats.combineCode(plan));
    }

    /**
     * Writes the rest of this rank's header at {@code owner}.
     *
     * @param bad the first selection of the plan that is no expert or not the one that was
     *     dispatched, or -1
     */
    void put(int owner, long call, HostBank bank, LowLatencyCombinePlan plan, long bad) {
        int epoch = CallEpoch.of(call);
        Tensor topkIdx = plan.topkIdx();
        long value = bad < 0 ? 0 : topkIdx.segment().get(LONG, 8 * bad);
        int numTopk = (int) topkIdx.size(1);
        headers.put(owner, epoch, CombineWord.HAS_ROWS, bank.present[owner] ? 1 : 0);
        headers.put(owner, epoch, CombineWord.COMBINE_STATUS, status(bad, value).value());
        headers.put(owner, epoch, CombineWord.COMBINE_TOKEN, bad < 0 ? 0 : (int) (bad / numTopk));
        headers.put(owner, epoch, CombineWord.COMBINE_K, bad < 0 ? 0 : (int) (bad % numTopk));
        headers.putLong(owner, epoch, CombineWord.COMBINE_VALUE_LOW, value);
        headers.announce(owner, epoch, CallEpoch.of(bank.call()));
    }

    private FaultCode status(long bad, long value) {
        if (bad < 0) {
            return FaultCode.OK;
        }
        boolean isSelection = value >= -1 && value < numExperts;
        return isSelection ? FaultCode.SELECTION_CHANGED : FaultCode.EXPERT_OUT_OF_RANGE;
    }

    /**
     * Holds the headers of the ranks that came against one another.
     *
     * @param dispatch that this rank combines
     * @throws RankMismatchException if a rank combines another dispatch or in another format
     * @throws RoutingException if a rank's selections are not valid
     */
    void check(long call, boolean[] came, long dispatch, LowLatencyCombinePlan plan) {
        int format = LowLatencyFormats.combineCode(plan);
        int epoch = CallEpoch.of(dispatch);
        for (int sender = 0; sender < numRanks; sender++) {
            if (!came[sender]) {
                continue;
            }
            int given = headers.get(call, sender, CombineWord.DISPATCH_EPOCH);
            if (given != epoch) {
                throw errors.otherDispatch(epoch, sender, given);
            }
            int theirs = headers.get(call, sender, CombineWord.ROW_FORMAT);
            if (theirs != format) {
                throw errors.combineFormat(format, sender, theirs);
            }
        }
        for (int sender = 0; sender < numRanks; sender++) {
            if (came[sender]) {
                checkStatus(call, sender);
            }
        }
    }

    private void checkStatus(long call, int sender) {
        FaultCode status = FaultCode.of(headers.get(call, sender, CombineWord.COMBINE_STATUS));
        if (status == FaultCode.OK) {
            return;
        }
        int token = headers.get(call, sender, CombineWord.COMBINE_TOKEN);
        int k = headers.get(call, sender, CombineWord.COMBINE_K);
        long value = headers.getLong(call, sender, CombineWord.COMBINE_VALUE_LOW);
        throw status == FaultCode.SELECTION_CHANGED
                ? errors.selectionChanged(sender, token, k, value)
                : errors.expertOutOfRange(sender, token, k, value);
    }

    /** Whether {@code sender} computed on this rank's tokens. */
    boolean hasRows(long call, int sender) {
        return headers.get(call, sender, CombineWord.HAS_ROWS) != 0;
    }
}
