package io.deepep.lowlatency.host;

import io.deepep.DType;
import io.deepep.Event;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.Tensor;
import io.deepep.host.HostMemory;
import io.deepep.lowlatency.LowLatencyFormats;
import io.deepep.lowlatency.RunsInFlight;
import io.deepep.lowlatency.Selections;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.Operation;
import io.deepep.spi.RecordedFacts;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Objects;

/**
 * A prepared combine: begin sends the experts' rows home, complete waits for this rank's own tokens
 * and sums them.
 */
final class HostCombine implements Operation<LowLatencyCombineResult> {
    private final HostLowLatencyKernels kernels;
    private final LowLatencyCombinePlan plan;
    private final Selections selections;
    private final Tensor out;
    private LowLatencyCombineResult cached;
    private final RunsInFlight runs;
    private final CallTimeouts timeouts;
    private long completed;

    HostCombine(HostLowLatencyKernels kernels, LowLatencyCombinePlan plan) {
        this.kernels = kernels;
        this.plan = plan;
        this.timeouts = kernels.peers.timeouts(plan);
        this.runs = new RunsInFlight(kernels.combines);
        this.selections =
                Selections.of(
                        plan.topkIdx(),
                        plan.topkIdx().segment(),
                        kernels.limits,
                        kernels.peers.count());
        this.out =
                plan.out() != null
                        ? plan.out()
                        : HostMemory.tensors(Arena.ofAuto())
                                .tensor(DType.BF16, plan.handle().numTokens(), plan.hidden());
    }

    @Override
    public void begin() {
        kernels.peers.allow(timeouts);
        runs.add(kernels.combiner.send(plan));
    }

    @Override
    public void complete() {
        kernels.peers.allow(timeouts);
        completed = runs.take();
        kernels.combiner.receive(completed, plan, selections, out);
    }

    /** Rows home count every selection, or pre-reduced every rank that a token selects. */
    @Override
    public void describe(RecordedFacts facts, boolean hasCompleted) {
        LowLatencyFormats.describe(facts, plan.format(), (int) out.size(1));
        facts.tokens(out.size(0), RecordedFacts.UNKNOWN);
        if (hasCompleted) {
            CombineBank bank = kernels.combines.of(completed);
            int[] home = selections.perRank(plan.isPreReduced());
            for (int rank = 0; rank < home.length; rank++) {
                home[rank] = bank.expected[rank] ? home[rank] : 0;
            }
            facts.tokens(out.size(0), Arrays.stream(home).sum())
                    .peers(bank.sentRows, home)
                    .directLinks(home);
        }
    }

    @Override
    public LowLatencyCombineResult result(Event event, Runnable receiveHook) {
        if (cached == null
                || !cached.event().equals(event)
                || !Objects.equals(cached.receiveHook(), receiveHook)) {
            cached = new LowLatencyCombineResult(out, event, receiveHook);
        }
        return cached;
    }
}
