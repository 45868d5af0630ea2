package io.deepep.normal.host;

import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.Event;
import io.deepep.Tensor;
import io.deepep.host.HostHeap;
import io.deepep.host.HostMemory;
import io.deepep.host.HostWait;
import io.deepep.normal.NormalConfigs;
import io.deepep.normal.NormalHeader;
import io.deepep.normal.NormalHeaders;
import io.deepep.normal.NormalRows;
import io.deepep.spi.Operation;
import io.deepep.spi.RecordedFacts;
import java.lang.foreign.Arena;
import java.util.Arrays;

/** A combine with the routing of a handle. */
final class CombineOperation implements Operation<CombineResult> {
    private final HostNormalState state;
    private final CombinePlan plan;
    private final Config config;
    private final HostDispatchHandle handle;
    private final int numRows;
    private final CombineInput input;
    private final CombineSources sources;
    private final CombineReducer reducer;
    private final CombineForwarder forwarder;
    private final Role[] roles;
    private final Tensor out;
    private final Tensor weightsOut;
    private CombineResult result;

    CombineOperation(HostNormalState state, CombinePlan plan) {
        this.state = state;
        this.plan = plan;
        this.handle = HostDispatchHandle.of(plan.handle(), state);
        this.numRows = handle.numResultRows();
        state.checks.combine(plan, numRows);
        if (plan.out() != null && state.nvlContains(plan.out())) {
            throw new IllegalArgumentException(
                    "out lies in the buffer, which peers read during a combine; give memory of your"
                            + " own");
        }
        this.config =
                NormalConfigs.choose(
                        plan.config(), plan.numSms(), state.combineConfig, state.envelope);
        this.out = plan.out() != null ? plan.out() : allocate(DType.BF16, handle.hidden());
        this.weightsOut = plan.topkWeights() == null ? null : allocate(DType.F32, handle.numTopk());
        this.input = new CombineInput(state, handle, plan);
        this.sources = new CombineSources(state);
        this.reducer = new CombineReducer(state, handle, config, sources, plan, out, weightsOut);
        if (state.topology.isInternode()) {
            int numWeights = weightsOut == null ? 0 : handle.numTopk();
            forwarder = new CombineForwarder(state, handle, config, sources, numWeights);
            roles = new Role[] {forwarder, reducer};
        } else {
            forwarder = null;
            roles = new Role[] {reducer};
        }
    }

    private Tensor allocate(DType dtype, int columns) {
        long numBytes = (long) dtype.sizeBytes() * handle.numTokens() * columns;
        return Tensor.of(
                HostMemory.allocate(Arena.ofAuto(), numBytes), dtype, handle.numTokens(), columns);
    }

    @Override
    public void begin() {
        handle.requireValid();
        if (handle.numResultRows() != numRows) {
            state.checks.combineRows(plan, handle.numResultRows());
        }
        input.stage();
        HeaderExchange exchange = state.exchange;
        exchange.start(NormalHeader.OP_COMBINE, (int) NormalHeader.tokensOffset(0));
        exchange.set(NormalHeader.HIDDEN, handle.hidden());
        exchange.set(NormalHeader.DTYPE, NormalHeader.dtypeCode(DType.BF16));
        exchange.set(NormalHeader.HAS_WEIGHTS, weightsOut == null ? 0 : 1);
        exchange.set(NormalHeader.HANDLE_EPOCH, handle.epoch());
        exchange.set(NormalHeader.NUM_CHANNELS, config.numChannels());
        exchange.set(NormalHeader.RDMA_RECV_CHUNK, config.rdmaRecvChunk());
        exchange.set(NormalHeader.X_OFFSET, input.offset());
        exchange.set(NormalHeader.X_ROW_BYTES, input.rowBytes());
        NormalHeaders headers = exchange.exchange("combine.header");
        headers.check(state.nvlLayout.capacity());
        sources.read(headers);
    }

    @Override
    public void complete() {
        reducer.start();
        if (forwarder != null) {
            forwarder.start();
        }
        Role.play(roles, state.context.waiter());
        awaitReaders();
    }

    /** Nobody may overwrite its input before the ranks of its node have read it. */
    private void awaitReaders() {
        HostHeap nvl = state.context.nvl();
        HostWait waiter = state.context.waiter();
        long epoch = state.exchange.epoch();
        long mine = state.nvlLayout.combineFlags().at(state.topology.rank());
        for (int nvlRank = 0; nvlRank < state.topology.numNvlRanks(); nvlRank++) {
            nvl.signal(
                    state.nodeRank(nvlRank), mine, epoch); // release; pairs with untilAtLeast below
        }
        for (int nvlRank = 0; nvlRank < state.topology.numNvlRanks(); nvlRank++) {
            int peer = state.nodeRank(nvlRank);
            waiter.untilAtLeast(
                    nvl, state.nvlLayout.combineFlags().at(peer), epoch, peer, "combine.end");
        }
    }

    /** Rows take the ways of the dispatch back. */
    @Override
    public void describe(RecordedFacts facts, boolean completed) {
        NormalRows.describe(facts, DType.BF16, handle.hidden());
        facts.tokens(handle.numTokens(), RecordedFacts.UNKNOWN);
        if (completed) {
            int[] home = handle.routing().scan().tokensPerRank();
            facts.tokens(handle.numTokens(), Arrays.stream(home).sum())
                    .peers(handle.receivedRows(), home);
            handle.describeLinks(facts);
        }
    }

    @Override
    public CombineResult result(Event event, Runnable receiveHook) {
        if (result == null || !result.event().equals(event)) {
            result = new CombineResult(out, weightsOut, event);
        }
        return result;
    }
}
