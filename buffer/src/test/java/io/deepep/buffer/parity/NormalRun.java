package io.deepep.buffer.parity;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import java.util.Map;
import java.util.TreeMap;

/** One rank's layout, dispatch, cached dispatch and combine of a normal-mode case. */
final class NormalRun {
    private final Buffer buffer;
    private final RankMemory memory;
    private final int numExperts;
    private final int expertAlignment;
    private final int numWorstTokens;
    private final boolean expanded;
    private final Map<String, Tensor> outputs = new TreeMap<>();

    NormalRun(Buffer buffer, RankMemory memory, ParityCase parity) {
        this.buffer = buffer;
        this.memory = memory;
        this.numExperts = parity.number("num_experts");
        this.expertAlignment = parity.number("expert_alignment");
        this.numWorstTokens = parity.number("num_worst_tokens");
        this.expanded = parity.flag("expanded");
    }

    Map<String, Tensor> run() {
        Tensor x = memory.device("x");
        Tensor scales = memory.device("scales");
        Tensor topkIdx = memory.device("topk_idx");
        Tensor topkWeights = memory.device("topk_weights");
        layout(topkIdx);
        DispatchPlan plan =
                DispatchPlan.builder(x, scales)
                        .topk(topkIdx, topkWeights, numExperts)
                        .expertAlignment(expertAlignment)
                        .numWorstTokens(numWorstTokens)
                        .expanded(expanded)
                        .build();
        DispatchResult result = buffer.dispatch(plan);
        result.event().synchronize();
        received(result);
        if (!expanded && numWorstTokens == 0) {
            dispatchAgain(x, scales, result);
        }
        combine(result);
        return outputs;
    }

    private void layout(Tensor topkIdx) {
        DispatchLayout layout = buffer.getDispatchLayout(topkIdx, numExperts);
        layout.event().synchronize();
        put("num_tokens_per_rank", layout.numTokensPerRank());
        put("num_tokens_per_rdma_rank", layout.numTokensPerRdmaRank());
        put("num_tokens_per_expert", layout.numTokensPerExpert());
        put("is_token_in_rank", layout.isTokenInRank());
    }

    private void received(DispatchResult result) {
        put("recv_x", defined(result.recvX()));
        put("recv_scales", defined(result.recvScales()));
        put("recv_topk_weights", defined(result.recvTopkWeights()));
        // In worst-case mode all rows, for the indices of unused ones are -1.
        put("recv_topk_idx", result.recvTopkIdx());
        put("num_recv_tokens_per_expert", result.numRecvTokensPerExpert());
        put("expert_offsets", result.expertOffsets());
    }

    /** The rows that were received, without the unused ones of worst-case mode. */
    private Tensor defined(Tensor rows) {
        return rows == null ? null : rows.slice(0, 0, memory.host("expert_output").size(0));
    }

    /** A dispatch with the routing of the first gives the same rows. */
    private void dispatchAgain(Tensor x, Tensor scales, DispatchResult first) {
        DispatchResult cached =
                buffer.dispatch(DispatchPlan.builder(x, scales).cached(first.handle()).build());
        cached.event().synchronize();
        Tensor again = memory.download(cached.recvX());
        assertThat(HostTensors.firstDifference(again, outputs.get("recv_x")))
                .as("first difference of the cached dispatch")
                .isEqualTo(-1);
    }

    private void combine(DispatchResult result) {
        CombinePlan.Builder plan =
                CombinePlan.builder(
                        memory.upload(allRows(memory.host("expert_output"))), result.handle());
        Tensor weights = outputs.get("recv_topk_weights");
        if (weights != null) {
            plan.topkWeights(memory.upload(allRows(weights)));
        }
        Tensor bias0 = memory.device("bias0");
        Tensor bias1 = memory.device("bias1");
        if (bias1 != null) {
            plan.bias(bias0, bias1);
        } else if (bias0 != null) {
            plan.bias(bias0);
        }
        CombineResult combined = buffer.combine(plan.build());
        combined.event().synchronize();
        put("combined_x", combined.x());
        put("combined_topk_weights", combined.topkWeights());
    }

    /** The given rows, and in worst-case mode unused ones of NaN. */
    private Tensor allRows(Tensor rows) {
        if (numWorstTokens == 0) {
            return rows;
        }
        DType dtype = rows.dtype();
        Tensor all = RankMemory.poisoned(dtype, numWorstTokens, rows.size(1));
        HostTensors.copy(rows, all.slice(0, 0, rows.size(0)));
        return all;
    }

    private void put(String name, Tensor tensor) {
        if (tensor != null) {
            outputs.put(name, memory.download(tensor));
        }
    }
}
