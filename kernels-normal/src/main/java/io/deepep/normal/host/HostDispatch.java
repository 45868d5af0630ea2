package io.deepep.normal.host;

import io.deepep.Config;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.normal.FaultMessages;
import io.deepep.normal.HeaderWord;
import io.deepep.normal.NormalCall;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.normal.RingShape;
import io.deepep.normal.host.call.HeaderExchange;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.call.Role;
import io.deepep.normal.host.internode.MetadataExchange;
import io.deepep.normal.host.internode.RingForwarder;
import io.deepep.normal.host.internode.RingSender;
import io.deepep.normal.host.internode.Rings;
import io.deepep.normal.host.node.GivenRows;
import io.deepep.normal.host.node.NodeRowSender;
import io.deepep.normal.host.node.TokenMetadata;
import io.deepep.normal.host.routing.HostDispatchHandle;
import io.deepep.normal.host.routing.Routing;
import io.deepep.normal.host.routing.RoutingScan;
import io.deepep.spi.Fault;
import io.deepep.spi.FaultCode;
import io.deepep.spi.Operation;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.RowFormat;

/** A dispatch with routing of its own or a handle's ("cached"). */
final class HostDispatch implements Operation<DispatchResult> {
    private final HostNormalState state;
    private final DispatchPlan plan;
    private final int numBlocks;
    private final NormalCall call;
    private final FaultMessages messages;
    private final HostDispatchHandle handle;
    private final HostDispatchOutputs outputs;
    private final RowFormat row;
    private final RingShape ringShape;
    private final Rings rings;
    private final MetadataExchange metadata;
    private final Role[] roles;

    /** Whether the expanded rows of some rank may be too many, so that all nodes must learn. */
    private boolean endsTogether;

    HostDispatch(HostNormalState state, DispatchPlan plan) {
        this.state = state;
        this.plan = plan;
        boolean cached = plan.handle() != null;
        HostDispatchHandle given = cached ? (HostDispatchHandle) state.own(plan.handle()) : null;
        state.checks.dispatch(plan);
        Config config = state.configs.of(plan);
        this.numBlocks = Math.min(config.numSms(), NormalRdmaLayout.MAX_BLOCKS);
        this.call = cached ? NormalCall.CACHED_DISPATCH : NormalCall.DISPATCH;
        this.handle = cached ? given : new HostDispatchHandle(state, plan);
        this.messages = state.messages(call, plan, handle.numExperts());
        this.outputs = new HostDispatchOutputs(state, handle, plan);
        GivenRows tokens = new GivenRows(plan.x(), plan.scales());
        this.row = tokens.format;
        Routing routing = handle.routing;
        this.metadata =
                cached
                        ? null
                        : new MetadataExchange(
                                state, handle, new TokenMetadata(state, plan, handle), numBlocks);
        Role sender = new NodeRowSender(state, routing, tokens);
        if (state.topology.isInternode()) {
            this.ringShape = RingShape.ofDispatch(config, 1);
            this.rings =
                    Rings.ofDispatch(
                            state,
                            ringShape,
                            NormalRdmaLayout.slotBytes(state.topology, row.strideBytes()));
            this.roles =
                    new Role[] {
                        new RingSender(state, routing, tokens, rings),
                        new RingForwarder(state, row, rings),
                        sender
                    };
        } else {
            this.ringShape = null;
            this.rings = null;
            this.roles = new Role[] {sender};
        }
        if (plan.numWorstTokens() > 0) {
            outputs.shape(plan.numWorstTokens());
        }
    }

    private boolean isCached() {
        return call == NormalCall.CACHED_DISPATCH;
    }

    @Override
    public void begin() {
        if (isCached()) {
            handle.requireValid();
        } else {
            handle.invalidate();
            handle.routing.scan.scan(plan.topkIdx(), plan.layout(), state.masks);
        }
        announce();
        state.headers.open(messages);
        try {
            state.received.overwrite(handle, false);
            endsTogether = false;
            if (!isCached()) {
                accept();
            }
            outputs.shape(handle.numResultRows());
        } catch (RuntimeException | Error failure) { // there may be no memory for so many rows
            state.exchange.abandon(failure);
            throw failure;
        }
    }

    private void announce() {
        HeaderExchange headers = state.headers;
        headers.start(call);
        headers.set(HeaderWord.MASKED, state.masks.word());
        headers.set(HeaderWord.HIDDEN, handle.hidden());
        headers.set(HeaderWord.ROW_BYTES, (int) row.strideBytes());
        headers.set(HeaderWord.NUM_SCALES, row.numScales());
        if (state.topology.isInternode()) {
            headers.set(HeaderWord.NUM_BLOCKS, numBlocks);
            headers.set(HeaderWord.NUM_SLOTS, ringShape.numSlots());
            headers.set(HeaderWord.NUM_TOKENS, handle.numTokens());
        }
        if (isCached()) {
            handle.announce(headers);
            return;
        }
        headers.set(HeaderWord.NUM_EXPERTS, handle.numExperts());
        headers.set(HeaderWord.TOPK, handle.numTopk());
        headers.set(HeaderWord.HAS_WEIGHTS, plan.topkWeights() == null ? 0 : 1);
        headers.set(HeaderWord.ROW_LIMIT, outputs.rowLimit());
        if (state.topology.isInternode()) {
            headers.set(
                    HeaderWord.EXPANDED_LIMITED,
                    plan.expanded() && plan.numWorstTokens() > 0 ? 1 : 0);
        }
        RoutingScan scan = handle.routing.scan;
        if (scan.fault() != null) {
            headers.setStatus(scan.fault());
        }
        headers.setCounts(scan.tokensPerRank, scan.selectionsPerExpert);
    }

    /** Judges the rows of all ranks and places this rank's own. */
    private void accept() {
        requireRoom();
        handle.routing.assignRows(state.headers, state.rails());
        outputs.setCounts(state.headers);
        if (handle.groups != null) {
            int rows = handle.groups.place(state.headers);
            int limit = plan.numWorstTokens();
            if (limit > 0 && rows > limit) {
                // Only this rank sees it: the others learn it when the call ends.
                state.exchange.record(
                        Fault.ofRoom(
                                FaultCode.TOO_MANY_EXPANDED, state.topology.rank(), limit, rows));
            }
        }
        handle.validate(state.exchange.epoch(), state.headers);
        for (int rank = 0; rank < state.topology.numRanks() && !endsTogether; rank++) {
            endsTogether =
                    state.topology.isInternode()
                            && !state.headers.isMasked(rank)
                            && state.headers.word(rank, HeaderWord.EXPANDED_LIMITED) != 0;
        }
    }

    private void requireRoom() {
        int numRanks = state.topology.numRanks();
        for (int rank = 0; rank < numRanks; rank++) {
            long rows = 0;
            for (int source = 0; source < numRanks; source++) {
                rows += state.headers.rows(source, rank);
            }
            int limit =
                    state.headers.isMasked(rank)
                            ? 0
                            : state.headers.word(rank, HeaderWord.ROW_LIMIT);
            if (rows > limit) {
                throw state.exchange.raise(
                        Fault.ofRoom(FaultCode.TOO_MANY_ROWS, rank, limit, rows));
            }
        }
    }

    @Override
    public void complete() {
        try {
            if (metadata != null) {
                metadata.run();
            }
            if (rings != null) {
                rings.start();
            }
            Role.play(roles, state.exchange);
            state.exchange.leave(endsTogether);
        } catch (RuntimeException failure) {
            throw failed(state.exchange.abandon(failure));
        }
        RuntimeException failure = state.exchange.failure();
        if (failure != null) {
            throw failed(failure);
        }
        if (handle.groups != null && !isCached()) {
            handle.groups.assign(
                    state.context.nvl().local(), handle.recvTopk, handle.numReceived());
        }
        outputs.finish();
    }

    /** The routing of a dispatch that failed is used by nobody; that of an earlier one still is. */
    private RuntimeException failed(RuntimeException failure) {
        if (!isCached()) {
            handle.invalidate();
        }
        return failure;
    }

    @Override
    public void describe(RecordedFacts facts, boolean completed) {
        facts.rows(row);
        facts.tokens(handle.numTokens(), RecordedFacts.UNKNOWN);
        if (completed) {
            handle.rows().describeDispatch(facts, handle.numTokens());
            outputs.describe(facts);
        }
    }

    @Override
    public DispatchResult result(Event event, Runnable receiveHook) {
        return outputs.result(event);
    }
}
