package io.deepep.lowlatency.cuda;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Random tokens among {@link MappedRanks}, and what comes of them. */
record Exchanges(MappedRanks ranks, Arena arena) {
    /** Tokens, selections and weights of all ranks. */
    record Inputs(List<Tensor> x, List<Tensor> topkIdx, List<Tensor> weights) {}

    Inputs inputs(long seed) {
        LowLatencyLimits limits = ranks.limits();
        int hidden = limits.hidden();
        int numTopk = limits.maxTopk();
        Random random = new Random(seed);
        Inputs inputs = new Inputs(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
        for (int rank = 0; rank < MappedRanks.NUM_RANKS; rank++) {
            int numTokens = limits.maxTokens() - rank;
            MemorySegment x = arena.allocate(ValueLayout.JAVA_SHORT, (long) numTokens * hidden);
            for (int i = 0; i < numTokens * hidden; i++) {
                float value = (float) random.nextGaussian();
                x.setAtIndex(
                        ValueLayout.JAVA_SHORT, i, (short) (Float.floatToIntBits(value) >> 16));
            }
            MemorySegment topkIdx =
                    arena.allocate(ValueLayout.JAVA_LONG, (long) numTokens * numTopk);
            MemorySegment weights =
                    arena.allocate(ValueLayout.JAVA_FLOAT, (long) numTokens * numTopk);
            for (int i = 0; i < numTokens * numTopk; i++) {
                int expert = random.nextInt(-1, limits.numExperts());
                topkIdx.setAtIndex(ValueLayout.JAVA_LONG, i, expert);
                weights.setAtIndex(ValueLayout.JAVA_FLOAT, i, random.nextFloat());
            }
            inputs.x().add(ranks.upload(rank, DType.BF16, x, numTokens, hidden));
            inputs.topkIdx().add(ranks.upload(rank, DType.I64, topkIdx, numTokens, numTopk));
            inputs.weights().add(ranks.upload(rank, DType.F32, weights, numTokens, numTopk));
        }
        return inputs;
    }

    /** What all ranks receive and combine, round by round. */
    List<byte[]> run(int rounds, LowLatencyFormat format, CombineFormat home, boolean preReduced) {
        List<byte[]> outcome = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            Inputs inputs = inputs(round);
            List<LowLatencyDispatchResult> received =
                    ranks.dispatch(
                            inputs.x(),
                            inputs.topkIdx(),
                            preReduced ? inputs.weights() : null,
                            format);
            for (int rank = 0; rank < MappedRanks.NUM_RANKS; rank++) {
                outcome.add(ranks.received(rank, received.get(rank), format));
            }
            if (format != LowLatencyFormat.BF16) {
                continue;
            }
            List<LowLatencyCombineResult> combined =
                    ranks.combine(
                            received, inputs.topkIdx(), preReduced ? null : inputs.weights(), home);
            for (int rank = 0; rank < MappedRanks.NUM_RANKS; rank++) {
                Tensor out = combined.get(rank).x();
                outcome.add(ranks.download(rank, out, 2 * out.numElements()));
            }
        }
        return outcome;
    }

    /** Overwrites the first selection by one of an expert that does not exist. */
    void spoil(Tensor topkIdx) {
        MemorySegment expert = arena.allocate(ValueLayout.JAVA_LONG);
        expert.set(ValueLayout.JAVA_LONG, 0, ranks.limits().numExperts());
        ranks.write(expert, topkIdx);
    }
}
