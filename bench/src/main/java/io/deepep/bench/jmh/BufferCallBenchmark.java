package io.deepep.bench.jmh;

import io.deepep.Buffer;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * What a warmed call costs beyond the rows that it moves: one rank on the host sends one short row
 * to itself, by plans that are used again. With and without an observer.
 */
@State(Scope.Benchmark)
public class BufferCallBenchmark extends CallBenchmark {
    private static final int HIDDEN = 128;

    /** Whether somebody observes the calls. */
    @Param({"false", "true"})
    public boolean observed;

    private long told;
    private InProcessGroup group;
    private Buffer buffer;
    private DispatchPlan dispatch;
    private CombinePlan combine;
    private LowLatencyDispatchPlan lowLatencyDispatch;

    /** Opens the buffer and makes each call once. */
    @Setup
    public void open() {
        group = InProcessGroup.of(1);
        Buffer.Builder builder =
                Buffer.builder(group.communicator(0))
                        .normal(NormalLimits.of(1, HIDDEN, 1, 1))
                        .lowLatency(new LowLatencyLimits(1, HIDDEN, 1, 1));
        buffer = (observed ? builder.observer(call -> told++) : builder).open();
        Arena arena = Arena.ofAuto();
        Tensor x = Tensor.allocate(arena, DType.BF16, 1, HIDDEN);
        Tensor topkIdx = Tensor.allocate(arena, DType.I64, 1, 1);
        dispatch = DispatchPlan.builder(x).topk(topkIdx, null, 1).build();
        DispatchResult received = buffer.dispatch(dispatch);
        combine = CombinePlan.builder(received.recvX(), received.handle()).build();
        lowLatencyDispatch =
                LowLatencyDispatchPlan.builder(x, topkIdx).format(LowLatencyFormat.BF16).build();
    }

    /** Closes the buffer. */
    @TearDown
    public void close() {
        buffer.close();
        group.close();
    }

    /** Normal dispatch. */
    @Benchmark
    public DispatchResult dispatch() {
        return buffer.dispatch(dispatch);
    }

    /** Normal combine. */
    @Benchmark
    public CombineResult combine() {
        return buffer.combine(combine);
    }

    /** Low-latency dispatch. */
    @Benchmark
    public LowLatencyDispatchResult lowLatencyDispatch() {
        return buffer.lowLatencyDispatch(lowLatencyDispatch);
    }
}
