package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * What the host backend asks of the memory of a plan each time it is used: refused before the call
 * starts, so that the buffer goes on.
 */
@Timeout(value = 30, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class TensorMemoryTest {
    private static final int NUM_TOKENS = 3;
    private static final int HIDDEN = 128;
    private static final int NUM_EXPERTS = 2;

    private interface Calls {
        void make(Buffer buffer, Arena confined, Arena shared);
    }

    private static void run(Calls calls) throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(1)) {
            group.run(
                    communicator -> {
                        try (Arena confined = Arena.ofConfined();
                                Arena shared = Arena.ofShared();
                                Buffer buffer =
                                        Buffer.builder(communicator)
                                                .normal(
                                                        NormalLimits.of(
                                                                NUM_TOKENS, HIDDEN, 1, NUM_EXPERTS))
                                                .lowLatency(
                                                        new LowLatencyLimits(
                                                                NUM_TOKENS, HIDDEN, 1, NUM_EXPERTS))
                                                .open()) {
                            calls.make(buffer, confined, shared);
                        }
                    });
        }
    }

    private static Tensor x(Arena arena) {
        return Tensor.allocate(arena, DType.BF16, NUM_TOKENS, HIDDEN);
    }

    private static Tensor topkIdx(Arena arena) {
        return Tensor.allocate(arena, DType.I64, NUM_TOKENS, 1);
    }

    /** Also by a plan that synchronous calls have used, and goes on with those. */
    @Test
    void confinedMemoryIsRefusedByAsynchronousCalls() throws InterruptedException {
        run(
                (buffer, confined, shared) -> {
                    DispatchPlan plan =
                            DispatchPlan.builder(x(shared))
                                    .topk(topkIdx(confined), null, NUM_EXPERTS)
                                    .build();
                    buffer.dispatch(plan);
                    assertThatThrownBy(() -> buffer.dispatch(plan, CallOptions.async()))
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessageContaining("topkIdx is ")
                            .hasMessageContaining("Arena.ofShared()");
                    assertThat(buffer.dispatch(plan).recvX().size(0)).isEqualTo(NUM_TOKENS);
                });
    }

    @Test
    void confinedMemoryIsRefusedInLowLatencyMode() throws InterruptedException {
        run(
                (buffer, confined, shared) -> {
                    LowLatencyDispatchPlan plan =
                            LowLatencyDispatchPlan.builder(x(confined), topkIdx(shared))
                                    .format(LowLatencyFormat.BF16)
                                    .build();
                    assertThatThrownBy(() -> buffer.lowLatencyDispatch(plan, CallOptions.async()))
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessageContaining("x is ");
                });
    }

    @Test
    void memoryOfAllThreadsIsTaken() throws InterruptedException {
        run(
                (buffer, _, shared) -> {
                    DispatchPlan plan =
                            DispatchPlan.builder(x(Arena.ofAuto()))
                                    .topk(topkIdx(shared), null, NUM_EXPERTS)
                                    .build();
                    buffer.dispatch(plan, CallOptions.async()).event().synchronize();
                });
    }

    /** A plan that has worked; its arena closes between two calls. */
    @Test
    void memoryThatWentBetweenCallsIsRefused() throws InterruptedException {
        run(
                (buffer, _, shared) -> {
                    DispatchPlan plan;
                    try (Arena brief = Arena.ofShared()) {
                        plan =
                                DispatchPlan.builder(x(brief))
                                        .topk(topkIdx(shared), null, NUM_EXPERTS)
                                        .build();
                        buffer.dispatch(plan);
                    }
                    for (CallOptions options : List.of(CallOptions.sync(), CallOptions.async())) {
                        assertThatThrownBy(() -> buffer.dispatch(plan, options))
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageContaining("x is ")
                                .hasMessageContaining("its arena is closed");
                    }
                    requireAlive(buffer, shared);
                });
    }

    @Test
    void memoryOfAnotherThreadIsRefused() throws InterruptedException {
        run(
                (buffer, confined, shared) -> {
                    DispatchPlan plan =
                            DispatchPlan.builder(x(confined))
                                    .topk(topkIdx(shared), null, NUM_EXPERTS)
                                    .build();
                    buffer.dispatch(plan);
                    Throwable refused =
                            CompletableFuture.supplyAsync(
                                            () -> catchThrowable(() -> buffer.dispatch(plan)))
                                    .join();
                    assertThat(refused)
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessageContaining("x is ")
                            .hasMessageContaining("confined arena of another thread");
                    requireAlive(buffer, shared);
                });
    }

    @Test
    void outputsInReadOnlyMemoryAreRefused() throws InterruptedException {
        run(
                (buffer, _, shared) -> {
                    DispatchHandle handle = dispatch(buffer, shared).handle();
                    LowLatencyHandle low = lowLatencyDispatch(buffer, shared).handle();
                    Tensor rows = Tensor.allocate(shared, DType.BF16, 2, NUM_TOKENS, HIDDEN);
                    requireReadOnly(
                            "out",
                            () ->
                                    buffer.combine(
                                            CombinePlan.builder(x(shared), handle)
                                                    .out(readOnly(x(shared)))
                                                    .build()));
                    requireReadOnly(
                            "out",
                            () ->
                                    buffer.lowLatencyCombine(
                                            home(rows, low, shared)
                                                    .out(readOnly(x(shared)))
                                                    .build()));
                    requireReadOnly(
                            "waitCostStats",
                            () ->
                                    buffer.lowLatencyCombine(
                                            home(rows, low, shared)
                                                    .waitCostStats(readOnly(waits(shared)))
                                                    .build()));
                    requireReadOnly(
                            "waitCostStats",
                            () ->
                                    buffer.lowLatencyDispatch(
                                            low(shared)
                                                    .waitCostStats(readOnly(waits(shared)))
                                                    .build()));
                    requireReadOnly(
                            "cumulativeStats",
                            () ->
                                    buffer.lowLatencyDispatch(
                                            low(shared)
                                                    .cumulativeStats(
                                                            readOnly(
                                                                    Tensor.allocate(
                                                                            shared,
                                                                            DType.I32,
                                                                            NUM_EXPERTS)))
                                                    .build()));
                    requireAlive(buffer, shared);
                });
    }

    /** The call is lost then, but not the reason. */
    @Test
    void memoryThatGoesDuringACallIsNamed() throws InterruptedException {
        run(
                (buffer, _, shared) -> {
                    Runnable release;
                    CombineResult combined;
                    try (Arena brief = Arena.ofShared()) {
                        CombinePlan plan =
                                CombinePlan.builder(x(brief), dispatch(buffer, shared).handle())
                                        .build();
                        release = HostTestStream.hold(buffer.communicationStream());
                        combined = buffer.combine(plan, CallOptions.async());
                    }
                    release.run();
                    for (ThrowingCallable call :
                            List.<ThrowingCallable>of(
                                    combined.event()::synchronize,
                                    () -> dispatch(buffer, shared))) {
                        assertThatThrownBy(call)
                                .isInstanceOf(IllegalStateException.class)
                                .hasMessageContaining("x is BF16[3, 128]")
                                .hasMessageContaining("its arena is closed");
                    }
                });
    }

    /** The JVM interrupts a thread that accesses memory while another thread frees it. */
    @Test
    void memoryThatGoesIsNamedToAThreadThatThisInterrupts() throws InterruptedException {
        run(
                (buffer, _, shared) -> {
                    Arena brief = Arena.ofShared();
                    CombinePlan plan =
                            CombinePlan.builder(x(brief), dispatch(buffer, shared).handle())
                                    .build();
                    Event frees =
                            new Event() {
                                @Override
                                public boolean isDone() {
                                    brief.close();
                                    Thread.currentThread().interrupt();
                                    return true;
                                }

                                @Override
                                public void synchronize() {}
                            };
                    assertThatThrownBy(() -> buffer.combine(plan, CallOptions.sync().after(frees)))
                            .isInstanceOf(IllegalStateException.class)
                            .hasMessageContaining("x is BF16[3, 128]")
                            .hasMessageContaining("its arena is closed");
                    assertThat(Thread.interrupted()).isTrue();
                });
    }

    /** Between the halves the inputs may go, what the second half writes may not. */
    @Test
    void aHookRefusesOutputsThatWent() throws InterruptedException {
        run(
                (buffer, _, shared) -> {
                    Runnable hook;
                    try (Arena brief = Arena.ofShared()) {
                        hook =
                                buffer.lowLatencyDispatch(low(brief).receiveHook(true).build())
                                        .receiveHook();
                    }
                    hook.run();
                    try (Arena brief = Arena.ofShared()) {
                        hook =
                                buffer.lowLatencyDispatch(
                                                low(shared)
                                                        .waitCostStats(waits(brief))
                                                        .receiveHook(true)
                                                        .build())
                                        .receiveHook();
                    }
                    assertThatThrownBy(hook::run)
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessageContaining("waitCostStats is ")
                            .hasMessageContaining("its arena is closed");
                    dispatch(buffer, shared);
                });
    }

    /** The rows of a combine may go, but not what weighs and sums those that come back. */
    @Test
    void aHookOfACombineRefusesInputsThatWent() throws InterruptedException {
        run(
                (buffer, _, shared) -> {
                    LowLatencyDispatchResult got = lowLatencyDispatch(buffer, shared);
                    Runnable hook;
                    try (Arena brief = Arena.ofShared()) {
                        Tensor rows =
                                Tensor.allocate(brief, DType.BF16, NUM_EXPERTS, NUM_TOKENS, HIDDEN);
                        hook = sendHome(buffer, home(rows, got.handle(), shared));
                    }
                    hook.run();
                    try (Arena brief = Arena.ofShared()) {
                        hook = sendHome(buffer, home(got.recvX(), got.handle(), brief));
                    }
                    assertThatThrownBy(hook::run)
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessageContaining("topkIdx is ")
                            .hasMessageContaining("its arena is closed");
                    requireAlive(buffer, shared);
                });
    }

    private static Runnable sendHome(Buffer buffer, LowLatencyCombinePlan.Builder plan) {
        return buffer.lowLatencyCombine(plan.receiveHook(true).build()).receiveHook();
    }

    private static Tensor waits(Arena arena) {
        return Tensor.allocate(arena, DType.I64, 1);
    }

    private static Tensor readOnly(Tensor tensor) {
        return Tensor.of(tensor.segment().asReadOnly(), tensor.dtype(), tensor.shape());
    }

    private static DispatchResult dispatch(Buffer buffer, Arena arena) {
        return buffer.dispatch(
                DispatchPlan.builder(x(arena)).topk(topkIdx(arena), null, NUM_EXPERTS).build());
    }

    private static LowLatencyDispatchPlan.Builder low(Arena arena) {
        return LowLatencyDispatchPlan.builder(x(arena), topkIdx(arena))
                .format(LowLatencyFormat.BF16);
    }

    private static LowLatencyDispatchResult lowLatencyDispatch(Buffer buffer, Arena arena) {
        return buffer.lowLatencyDispatch(low(arena).build());
    }

    private static LowLatencyCombinePlan.Builder home(
            Tensor rows, LowLatencyHandle handle, Arena arena) {
        Tensor weights = Tensor.allocate(arena, DType.F32, NUM_TOKENS, 1);
        return LowLatencyCombinePlan.builder(rows, topkIdx(arena), weights, handle);
    }

    private static void requireReadOnly(String name, ThrowingCallable call) {
        assertThatThrownBy(call)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(name + " is ")
                .hasMessageContaining("in read-only memory");
    }

    private static void requireAlive(Buffer buffer, Arena arena) {
        assertThat(dispatch(buffer, arena).recvX().size(0)).isEqualTo(NUM_TOKENS);
        assertThat(lowLatencyDispatch(buffer, arena).recvX().size(2)).isEqualTo(HIDDEN);
    }
}
