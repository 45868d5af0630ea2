package io.deepep.normal.host;

import io.deepep.Config;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.Tensor;
import io.deepep.normal.NormalConfigs;
import io.deepep.normal.NormalHeader;
import io.deepep.normal.NormalHeaders;
import io.deepep.normal.NormalNvlLayout;
import io.deepep.normal.NormalRows;
import io.deepep.spi.Operation;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.RowFormat;

/** A dispatch with routing of its own or a handle's ("cached"). */
final class DispatchOperation implements Operation<DispatchResult> {
    private final HostNormalState state;
    private final DispatchPlan plan;
    private final Config config;
    private final boolean cached;
    private final HostDispatchHandle handle;
    private final DispatchOutputs outputs;
    private final DispatchSender sender;
    private final DispatchReceiver receiver;
    private final DispatchRdmaSender rdmaSender;
    private final DispatchForwarder forwarder;
    private final Role[] roles;

    DispatchOperation(HostNormalState state, DispatchPlan plan) {
        this.state = state;
        this.plan = plan;
        this.cached = plan.handle() != null;
        HostDispatchHandle given = cached ? HostDispatchHandle.of(plan.handle(), state) : null;
        state.checks.dispatch(plan);
        requireNotReceived(plan.x());
        this.config =
                NormalConfigs.choose(
                        plan.config(), plan.numSms(), state.dispatchConfig, state.envelope);
        this.handle = cached ? given : newHandle(state, plan);
        this.outputs = new DispatchOutputs(state, handle, plan);
        TokenRows tokens = new TokenRows(plan);
        Routing routing = handle.routing();
        sender = new DispatchSender(state, routing, tokens);
        receiver = new DispatchReceiver(state);
        if (state.topology.isInternode()) {
            long dataBytes = new RowFormat(plan.x().dtype(), handle.hidden()).dataBytes();
            long metaBytes = NormalNvlLayout.metaBytes(cached ? 0 : handle.numTopk());
            rdmaSender = new DispatchRdmaSender(state, routing, tokens, config);
            forwarder = new DispatchForwarder(state, routing, config, dataBytes, metaBytes);
            roles = new Role[] {rdmaSender, forwarder, sender, receiver};
        } else {
            rdmaSender = null;
            forwarder = null;
            roles = new Role[] {sender, receiver};
        }
        if (plan.numWorstTokens() > 0) {
            outputs.shape(plan.numWorstTokens());
        }
    }

    /** Peers write the receive region while this rank still reads its tokens. */
    private void requireNotReceived(Tensor x) {
        long offset = x.address() - state.context.nvl().local().address();
        if (offset >= state.nvlLayout.dispatchRows().offset()
                && offset < state.nvlLayout.dispatchRows().end()) {
            throw new IllegalArgumentException(
                    "x is a view of received rows, which a dispatch overwrites; copy it, or receive"
                            + " a copy");
        }
    }

    private static HostDispatchHandle newHandle(HostNormalState state, DispatchPlan plan) {
        int numTokens = (int) plan.x().size(0);
        int numTopk = plan.topkIdx() == null ? 0 : (int) plan.topkIdx().size(1);
        int numExperts = plan.topkIdx() == null ? 0 : plan.numExperts();
        int numLocalExperts = numExperts / state.topology.numRanks();
        ExpertGroups groups =
                plan.expanded()
                        ? new ExpertGroups(
                                numLocalExperts * state.topology.rank(),
                                numLocalExperts,
                                numTopk,
                                plan.expertAlignment())
                        : null;
        Routing routing =
                new Routing(state.topology, numTokens, numExperts, state.limits.maxTokens());
        return new HostDispatchHandle(
                state,
                routing,
                groups,
                (int) plan.x().size(1),
                numTopk,
                numExperts,
                plan.numWorstTokens());
    }

    @Override
    public void begin() {
        if (cached) {
            handle.requireValid();
            startHeader(NormalHeader.OP_CACHED_DISPATCH, NormalHeader.tokensOffset(0));
            state.exchange.set(NormalHeader.HANDLE_EPOCH, handle.epoch());
            state.exchange.exchange("dispatch.header").check(state.nvlLayout.capacity());
        } else {
            handle.invalidate();
            RoutingScan scan = handle.routing().scan();
            scan.scan(plan.topkIdx(), plan.layout());
            startHeader(
                    NormalHeader.OP_DISPATCH,
                    NormalHeader.selectionsOffset(state.topology.numRanks(), handle.numExperts()));
            setRouting(scan);
            accept(state.exchange.exchange("dispatch.header"));
        }
        outputs.shape(handle.numResultRows());
    }

    private void startHeader(int operation, long numBytes) {
        HeaderExchange exchange = state.exchange;
        exchange.start(operation, (int) numBytes);
        exchange.set(NormalHeader.HIDDEN, handle.hidden());
        exchange.set(NormalHeader.DTYPE, NormalHeader.dtypeCode(plan.x().dtype()));
        exchange.set(NormalHeader.NUM_TOKENS, handle.numTokens());
        exchange.set(NormalHeader.NUM_CHANNELS, config.numChannels());
        exchange.set(NormalHeader.RDMA_RECV_CHUNK, config.rdmaRecvChunk());
    }

    private void setRouting(RoutingScan scan) {
        HeaderExchange exchange = state.exchange;
        exchange.set(NormalHeader.STATUS, scan.status());
        for (int i = 0; i < 3; i++) {
            exchange.set(NormalHeader.DETAIL + i, scan.detail(i));
        }
        exchange.set(NormalHeader.NUM_EXPERTS, handle.numExperts());
        exchange.set(NormalHeader.NUM_TOPK, handle.numTopk());
        exchange.set(NormalHeader.HAS_WEIGHTS, plan.topkWeights() == null ? 0 : 1);
        exchange.set(NormalHeader.EXPERT_ALIGNMENT, plan.expertAlignment());
        exchange.set(NormalHeader.EXPANDED, plan.expanded() ? 1 : 0);
        exchange.set(NormalHeader.NUM_WORST_TOKENS, plan.numWorstTokens());
        exchange.setCounts(scan.tokensPerRank(), scan.selectionsPerExpert());
    }

    private void accept(NormalHeaders headers) {
        headers.check(state.nvlLayout.capacity());
        handle.routing().assignRows(headers);
        if (handle.groups() != null) {
            handle.groups().place(headers);
        }
        handle.validate(state.exchange.epoch(), headers);
        outputs.setCounts(headers);
    }

    @Override
    public void complete() {
        sender.start();
        receiver.start();
        if (rdmaSender != null) {
            rdmaSender.start();
            forwarder.start();
        }
        Role.play(roles, state.context.waiter());
        if (handle.groups() != null && !cached) {
            handle.groups()
                    .assign(
                            state.context.nvl().local(),
                            state.nvlLayout.recvMeta(),
                            handle.numReceived());
        }
        outputs.finish();
    }

    @Override
    public void describe(RecordedFacts facts, boolean completed) {
        NormalRows.describe(facts, plan.x().dtype(), handle.hidden());
        facts.tokens(handle.numTokens(), RecordedFacts.UNKNOWN);
        if (completed) {
            facts.tokens(handle.numTokens(), handle.numReceived())
                    .peers(handle.routing().scan().tokensPerRank(), handle.receivedRows());
            handle.describeLinks(facts);
            outputs.describe(facts);
        }
    }

    @Override
    public DispatchResult result(Event event, Runnable receiveHook) {
        return outputs.result(handle, event);
    }
}
