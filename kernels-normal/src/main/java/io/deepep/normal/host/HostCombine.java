package io.deepep.normal.host;

import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.Event;
import io.deepep.Tensor;
import io.deepep.host.HostMemory;
import io.deepep.normal.CombineRoles;
import io.deepep.normal.FaultMessages;
import io.deepep.normal.HeaderWord;
import io.deepep.normal.NormalCall;
import io.deepep.normal.NormalRows;
import io.deepep.normal.RingShape;
import io.deepep.normal.host.call.HeaderExchange;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.call.Role;
import io.deepep.normal.host.internode.NodeReducer;
import io.deepep.normal.host.internode.NodeWeights;
import io.deepep.normal.host.internode.Rings;
import io.deepep.normal.host.internode.TokenReducer;
import io.deepep.normal.host.node.CombineInput;
import io.deepep.normal.host.node.OfferedRows;
import io.deepep.normal.host.node.SentRows;
import io.deepep.normal.host.routing.HostDispatchHandle;
import io.deepep.spi.Operation;
import io.deepep.spi.RecordedFacts;
import java.lang.foreign.Arena;

/** A combine with the routing of a handle. */
final class HostCombine implements Operation<CombineResult> {
    private final HostNormalState state;
    private final CombinePlan plan;
    private final Config config;
    private final FaultMessages messages;
    private final HostDispatchHandle handle;
    private final int numRows;
    private final SentRows sent;
    private final CombineInput input;
    private final OfferedRows offered;
    private final RingShape ringShape;
    private final Rings rings;
    private final NodeWeights weights;
    private final Role[] roles;
    private final Tensor out;
    private final Tensor weightsOut;
    private CombineResult result;

    HostCombine(HostNormalState state, CombinePlan plan) {
        this.state = state;
        this.plan = plan;
        this.handle = (HostDispatchHandle) state.own(plan.handle());
        this.numRows = handle.numResultRows();
        state.checks.combine(plan, numRows);
        this.config = state.configs.of(plan);
        this.messages = state.messages(NormalCall.COMBINE, plan, handle.numExperts());
        this.out = plan.out() != null ? plan.out() : allocate(DType.BF16, plan.hidden());
        this.weightsOut = plan.topkWeights() == null ? null : allocate(DType.F32, handle.numTopk());
        this.sent = new SentRows(NormalRows.ofCombine(plan));
        this.input = new CombineInput(state, handle, plan, sent);
        this.offered = new OfferedRows(state, sent);
        boolean internode = state.topology.isInternode();
        if (internode) {
            CombineRoles blocks =
                    CombineRoles.of(config.numSms(), state.topology, sent.format.dtype());
            ringShape = RingShape.ofCombine(config, blocks);
            rings = Rings.ofCombine(state, ringShape, sent.format.strideBytes());
        } else {
            ringShape = null;
            rings = null;
        }
        weights =
                weightsOut == null
                        ? null
                        : new NodeWeights(state, handle, ringShape, offered, weightsOut);
        TokenReducer home = new TokenReducer(state, handle, rings, offered, sent, plan, out);
        roles =
                internode
                        ? new Role[] {new NodeReducer(state, handle, rings, offered, sent), home}
                        : new Role[] {home};
    }

    private Tensor allocate(DType dtype, int columns) {
        return HostMemory.tensors(Arena.ofAuto()).tensor(dtype, handle.numTokens(), columns);
    }

    @Override
    public void begin() {
        handle.requireValid();
        state.received.requireCurrent(plan.x(), state.nvlAddress(), handle);
        if (handle.numResultRows() != numRows) {
            state.checks.combineRows(plan, handle.numResultRows());
        }
        input.stage();
        HeaderExchange headers = state.headers;
        headers.start(NormalCall.COMBINE);
        headers.set(HeaderWord.HIDDEN, plan.hidden());
        headers.set(HeaderWord.NUM_SCALES, sent.format.numScales());
        headers.set(HeaderWord.TOPK, weightsOut == null ? 0 : handle.numTopk());
        headers.set(HeaderWord.MASKED, state.masks.word());
        handle.announce(headers);
        if (state.topology.isInternode()) {
            headers.set(HeaderWord.NUM_BLOCKS, config.numSms());
            headers.set(HeaderWord.NUM_SLOTS, ringShape.numSlots());
        }
        input.offer(headers);
        headers.open(messages);
        offered.learn(headers);
    }

    @Override
    public void complete() {
        try {
            if (rings != null) {
                rings.start();
            }
            if (weights != null) {
                weights.run();
            }
            Role.play(roles, state.exchange);
            state.exchange.leave(false); // nobody overwrites its input before all have read it
        } catch (RuntimeException failure) {
            throw state.exchange.abandon(failure);
        }
        RuntimeException failure = state.exchange.failure();
        if (failure != null) {
            throw failure;
        }
    }

    /** Rows take the ways of the dispatch back. */
    @Override
    public void describe(RecordedFacts facts, boolean completed) {
        facts.rows(sent.format);
        facts.tokens(handle.numTokens(), RecordedFacts.UNKNOWN);
        if (completed) {
            handle.rows().describeCombine(facts, handle.numTokens());
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
