package io.deepep.buffer.parity;

import io.deepep.Buffer;
import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** One rank's dispatch and combine of a low-latency case. */
final class LowLatencyRun {
    private final Buffer buffer;
    private final RankMemory memory;
    private final ParityCase parity;
    private final Map<String, Tensor> outputs = new TreeMap<>();

    LowLatencyRun(Buffer buffer, RankMemory memory, ParityCase parity) {
        this.buffer = buffer;
        this.memory = memory;
        this.parity = parity;
    }

    Map<String, Tensor> run() {
        Set<Integer> absent = parity.absent();
        if (absent.contains(memory.rank())) {
            return outputs;
        }
        absent.forEach(rank -> buffer.updateMask(rank, true));
        Tensor topkIdx = memory.device("topk_idx");
        Tensor stats = memory.device("cumulative_stats");
        LowLatencyDispatchPlan.Builder plan =
                LowLatencyDispatchPlan.builder(memory.device("x"), topkIdx)
                        .format(parity.format())
                        .cumulativeStats(stats);
        if (isPreReduced()) {
            plan.topkWeights(memory.device("topk_weights"));
        }
        LowLatencyDispatchResult result = buffer.lowLatencyDispatch(plan.build());
        result.event().synchronize();
        Tensor count = memory.download(result.recvCount());
        outputs.put("recv_count", count);
        outputs.put("cumulative_stats", memory.download(stats));
        outputs.put("recv_x", packed(memory.download(result.recvX()), count));
        outputs.put("src_info", packed(memory.download(result.handle().srcInfo()), count));
        if (result.recvScales() != null) {
            outputs.put("recv_scales", packed(memory.download(result.recvScales()), count));
        }
        putRanges(memory.download(result.handle().layoutRange()));
        combine(topkIdx, result, count);
        return outputs;
    }

    private void combine(Tensor topkIdx, LowLatencyDispatchResult result, Tensor count) {
        Tensor x = RankMemory.poisoned(DType.BF16, result.recvX().shape());
        Tensor rows = memory.host("expert_output");
        forEachExpert(
                count,
                (expert, from, number) ->
                        HostTensors.copy(
                                rows.slice(0, from, number),
                                x.select(0, expert).slice(0, 0, number)));
        LowLatencyHandle handle = result.handle();
        LowLatencyCombinePlan.Builder plan =
                isPreReduced()
                        ? LowLatencyCombinePlan.preReduced(memory.upload(x), topkIdx, handle)
                        : LowLatencyCombinePlan.builder(
                                memory.upload(x), topkIdx, memory.device("topk_weights"), handle);
        LowLatencyCombineResult combined =
                buffer.lowLatencyCombine(
                        plan.format(
                                        parity.flag("logfmt")
                                                ? CombineFormat.LOGFMT
                                                : CombineFormat.BF16)
                                .build());
        combined.event().synchronize();
        outputs.put("combined_x", memory.download(combined.x()));
    }

    private boolean isPreReduced() {
        return parity.flag("pre_reduced");
    }

    /** The defined rows of [El, rows, ...], expert after expert. */
    private static Tensor packed(Tensor tensor, Tensor count) {
        long[] shape = new long[tensor.rank() - 1];
        for (int dim = 1; dim < shape.length; dim++) {
            shape[dim] = tensor.size(dim + 1);
        }
        for (int expert = 0; expert < count.size(0); expert++) {
            shape[0] += count.getLong(expert);
        }
        Tensor rows = HostTensors.allocate(tensor.dtype(), shape);
        forEachExpert(
                count,
                (expert, from, number) ->
                        HostTensors.copy(
                                tensor.select(0, expert).slice(0, 0, number),
                                rows.slice(0, from, number)));
        return rows;
    }

    /** Takes the rows of one expert. */
    private interface ExpertRows {
        void take(long expert, long from, long number);
    }

    private static void forEachExpert(Tensor count, ExpertRows rows) {
        long from = 0;
        for (int expert = 0; expert < count.size(0); expert++) {
            rows.take(expert, from, count.getLong(expert));
            from += count.getLong(expert);
        }
    }

    private void putRanges(Tensor range) {
        Tensor count = HostTensors.allocate(DType.I32, range.shape());
        Tensor begin = HostTensors.allocate(DType.I32, range.shape());
        for (int expert = 0; expert < range.size(0); expert++) {
            for (int src = 0; src < range.size(1); src++) {
                long both = range.getLong(expert, src);
                int rows = LowLatencyHandle.rangeCount(both);
                count.setLong(rows, expert, src);
                // Undefined where no row came.
                begin.setLong(rows == 0 ? 0 : LowLatencyHandle.rangeBegin(both), expert, src);
            }
        }
        outputs.put("range_count", count);
        outputs.put("range_begin", begin);
    }
}
