package io.deepep.testkit.conformance.normal;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.testkit.Recording;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.RankContext;
import java.util.List;

/** Normal-mode combines recorded into a graph by themselves. For backends that can record. */
@BackendSuite(recording = true)
public record NormalGraphCombineConformance(TestBackend backend) implements NormalSuite {
    /**
     * A combine recorded without its dispatch, which was called before: kernels that need not look
     * at masks left its handle to those of the recording, which do.
     */
    @FewForFp8
    public void afterADispatchOutsideTheGraph(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        Buffer buffer = context.buffer();
        DispatchResult received = rank.dispatch();
        List<Tensor> outputs = rank.world().outputs(rank.check());
        List<Tensor> weights = rank.world().weights(rank.check());
        for (CombineFormat format : List.of(CombineFormat.BF16, CombineFormat.FP8)) {
            Tensor x = context.poisoned(DType.BF16, outputs.get(context.rank()).shape());
            Tensor given = context.poisoned(DType.F32, weights.get(context.rank()).shape());
            CombinePlan plan =
                    CombinePlan.builder(x, received.handle())
                            .topkWeights(given)
                            .format(format)
                            .build();
            CombineResult combined = buffer.combine(plan, CallOptions.async());
            combined.event().synchronize();
            context.backend().write(outputs.get(context.rank()), x);
            context.backend().write(weights.get(context.rank()), given);
            context.meet();
            try (Recording recording =
                    backend.record(
                            buffer.communicationStream(),
                            () -> buffer.combine(plan, CallOptions.async()))) {
                context.meet();
                recording.replay();
                rank.verify(combined, format, outputs);
                rank.verifyWeights(combined, weights);
            }
        }
    }
}
