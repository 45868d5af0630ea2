package io.deepep.testkit.conformance.lowlatency;

import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.conformance.ExchangeRank;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RepeatedCalls;
import io.deepep.testkit.exchange.LowLatencyWorld;
import java.util.IdentityHashMap;
import java.util.function.BiConsumer;
import java.util.function.Function;

/**
 * Dispatches and combines of one rank. The combine of each handle is prepared by the first call
 * that gets the handle.
 */
public final class LowLatencyPairs implements RepeatedCalls<LowLatencyWorld> {
    private final RankContext context;
    private final LowLatencyFormat format;
    private final CallOptions options;
    private final boolean preReduced;
    private final CombineFormat homeFormat;
    private final LowLatencyRank memory;
    private final LowLatencyDispatchPlan plan;
    private final Function<LowLatencyHandle, LowLatencyCombinePlan> planHome;
    private final IdentityHashMap<LowLatencyHandle, LowLatencyCombinePlan> homes =
            new IdentityHashMap<>();
    private LowLatencyRank expected;
    private BiConsumer<Tensor, Tensor> experts = (_, _) -> {}; // their outputs are there already
    private LowLatencyDispatchResult received;
    private LowLatencyCombineResult home;

    LowLatencyPairs(
            LowLatencyRank memory,
            LowLatencyFormat format,
            CallOptions options,
            boolean hook,
            boolean preReduced,
            CombineFormat homeFormat) {
        this.context = memory.context();
        this.format = format;
        this.options = options;
        this.preReduced = preReduced;
        this.homeFormat = homeFormat;
        this.memory = memory;
        this.expected = memory;
        this.plan =
                (preReduced ? memory.weighted(format) : memory.plan(format))
                        .receiveHook(hook)
                        .build();
        this.planHome =
                handle ->
                        (preReduced ? memory.preReduced(handle) : memory.home(handle))
                                .receiveHook(hook)
                                .format(homeFormat)
                                .build();
    }

    /** Of which each rank gets all its rows back, as BF16. */
    public LowLatencyPairs(
            LowLatencyRank memory, LowLatencyFormat format, CallOptions options, boolean hook) {
        this(memory, format, options, hook, false, CombineFormat.BF16);
    }

    /** FP8 tokens, received at once. */
    public LowLatencyPairs(LowLatencyRank memory, CallOptions options) {
        this(memory, LowLatencyFormat.FP8, options, false);
    }

    /** Has outputs made of what was received, by work between the two calls. */
    void makeOutputs(BiConsumer<Tensor, Tensor> given) {
        experts = given;
    }

    LowLatencyRank memory() {
        return memory;
    }

    LowLatencyRank expected() {
        return expected;
    }

    LowLatencyDispatchResult received() {
        return received;
    }

    LowLatencyCombineResult home() {
        return home;
    }

    void send() {
        received = context.buffer().lowLatencyDispatch(plan, options);
    }

    void dispatch() {
        send();
        ExchangeRank.receive(received.receiveHook());
    }

    void sendHome() {
        experts.accept(received.recvX(), memory.outputs());
        LowLatencyCombinePlan back = homes.computeIfAbsent(received.handle(), planHome);
        home = context.buffer().lowLatencyCombine(back, options);
    }

    @Override
    public void enqueue() {
        dispatch();
        sendHome();
        ExchangeRank.receive(home.receiveHook());
    }

    @Override
    public void load(LowLatencyWorld world) {
        expected = new LowLatencyRank(context, world);
        memory.load(expected);
    }

    void poisonOutputs() {
        Tensor poison = HostTensors.poison(context.download(memory.outputs()));
        context.backend().write(poison, memory.outputs());
    }

    void verifyReceived() {
        expected.verify(received, format);
    }

    /** Compares what has come home. */
    public void verifyHome() {
        expected.verify(home, homeFormat, preReduced);
    }

    @Override
    public void verify() {
        verifyReceived();
        verifyHome();
    }
}
