package io.deepep.normal.host.call;

import io.deepep.EpTopology;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.Departure;
import io.deepep.host.HostHeap;
import io.deepep.host.HostWait;
import io.deepep.normal.DoneWord;
import io.deepep.normal.FaultMessages;
import io.deepep.normal.Masks;
import io.deepep.spi.Fault;
import io.deepep.spi.FaultCode;
import io.deepep.spi.FaultPhase;
import io.deepep.spi.Region;
import io.deepep.spi.Word;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * How a rank waits for others within a call, learns that one gave up, and leaves: exchange.cuh and
 * internode_exchange.cuh in Java. {@link HeaderExchange} opens the call.
 *
 * <p>A rank leaves by a done flag at every rank of its node. One that gives up does so early, with
 * a code and with whom it gave up on, and tells its peers on other nodes by their ending; whoever
 * waits for it then ends too and blames the same rank. A rank that has waited for half of its time
 * says so; whoever waits for such a rank gives it as much time again to tell whom it lacks, so that
 * in a chain of ranks that wait for each other all blame the silent one at its end. A rank that
 * waits for others to begin may do so for longer than others wait for it: it says so again and
 * again, and is not given up while it is heard.
 */
public final class CallExchange {
    private static final long DETAIL_OFFSET = DoneWord.DETAIL.offset();
    private static final long CULPRIT_OFFSET = DoneWord.CULPRIT.offset();
    private static final long SINCE_OFFSET = DoneWord.SINCE.offset();

    private final EpTopology topology;
    private final HostHeap nvl;
    private final HostHeap rdma;
    private final HostWait waiter;
    private final Region doneFlags;
    private final Region endings;

    final Masks masks;

    /** Whether a rank that does not come is masked. */
    final boolean masksTimedOut;

    private final SaidWaits waits;

    private FaultMessages messages;
    private Fault fault;
    private int epoch;

    /** The first of the calls that this rank has ended with a code until now, or 0. */
    private int toldSince;

    /**
     * Of one rank.
     *
     * @param state has its memory, layouts and masks by now
     * @param masksTimedOut whether a rank that does not come is masked: then a call fails on all
     *     others, who must be in step for the next one
     */
    CallExchange(HostNormalState state, boolean masksTimedOut) {
        topology = state.topology;
        nvl = state.context.nvl();
        rdma = state.context.rdma();
        waiter = state.context.waiter();
        doneFlags = state.nvlLayout.doneFlags();
        endings = state.rdmaLayout.endings();
        masks = state.masks;
        this.masksTimedOut = masksTimedOut;
        waits = new SaidWaits(state);
    }

    /** Of the call, as {@link Word} counts them. */
    public int epoch() {
        return epoch;
    }

    public void startAfter(int lastEpoch) {
        epoch = lastEpoch;
        toldSince = 0;
    }

    /** Enters the next call. */
    void enter(FaultMessages ofCall) {
        messages = ofCall;
        waiter.allow(ofCall.timeouts().startNanos());
        fault = null;
        epoch = Word.epochAfter(epoch);
        waits.enter(epoch, ofCall.timeouts());
    }

    /** All ranks have entered it: waits are short from here on. */
    void noteBegun() {
        waiter.allow(messages.timeouts().nanos());
    }

    // ---- waiting ----

    /** Begins a wait. */
    void startWait() {
        waiter.start();
    }

    /** Something came: the time allowed starts again. */
    void progress() {
        waiter.progress();
    }

    /**
     * Waits a little for {@code peer}.
     *
     * @throws DeepEpTimeoutException if nothing came for the time allowed, or somebody gave up
     */
    public void idle(int peer, FaultPhase phase, long expected, long seen) {
        idle(peer, peer, phase, expected, seen);
    }

    /** The same of what {@code relay} brings, which is to blame unless it waits for it itself. */
    void idle(int peer, int relay, FaultPhase phase, long expected, long seen) {
        requireNobodyGaveUp(phase);
        long waited = waiter.waitedNanos();
        waits.say(phase.begins(), waited);
        waiter.rest(peer, messages.phase(phase));
        if (waiter.waitedNanos() > waiter.timeoutNanos() + waits.patience(peer)) {
            requireNobodyGaveUp(phase); // whoever no longer says that it waits has told why before
            int silent = isSilent(relay) ? relay : peer;
            throw messages.failure(waitFault(FaultCode.TIMEOUT, phase, silent, expected, seen));
        }
    }

    private Fault waitFault(FaultCode code, FaultPhase phase, int peer, long expected, long seen) {
        return Fault.ofWait(code, phase, topology.rank(), peer, expected, seen)
                .after(waiter.waitedNanos());
    }

    /**
     * Whether somebody told that it gave up on another, and this rank has time left to see who else
     * does not come: where ranks are masked, all that are lost at once then cost one time-out. Not
     * more than one within a call: who told goes on to the next call, where whoever is late is
     * waited for as well.
     *
     * @param toldNanos when it was told
     */
    boolean mayWaitOn(long toldNanos) {
        boolean told = fault != null && fault.code() == FaultCode.PEER_ABORTED;
        boolean over = System.nanoTime() - toldNanos > messages.timeouts().nanos();
        return masksTimedOut && told && fault.k() != topology.rank() && !waiter.expired() && !over;
    }

    /** Whether this rank itself has waited in vain for all the time allowed. */
    boolean hasExpired() {
        return waiter.expired();
    }

    /** Whether the group knows that a rank is gone. */
    boolean isGone(int rank) {
        return Departure.of(waiter.departures(), rank) != null;
    }

    /** Waits a little, whoever gave up. */
    void pause() {
        waiter.pause();
    }

    /** Whether a rank does not say that it waits itself. */
    public boolean isSilent(int rank) {
        return waits.patience(rank) == 0;
    }

    /**
     * Waits until the flag at {@code offset} of this rank's part of {@code heap} belongs to this
     * call (acquire); pairs with {@link HostHeap#signal}.
     *
     * @return the flag
     */
    public long await(HostHeap heap, long offset, int peer, FaultPhase phase) {
        startWait();
        long flag = heap.flag(offset);
        for (; Word.epoch(flag) != epoch; flag = heap.flag(offset)) {
            idle(peer, phase, Integer.toUnsignedLong(epoch), flag);
        }
        return flag;
    }

    /** Waits for a flag of every rank of this node, itself included. */
    public void awaitNode(Region flags, FaultPhase phase) {
        for (int peer : masks.rails().near()) {
            await(nvl, flagOf(peer, flags), peer, phase);
        }
    }

    /** Sets this rank's flag at every rank of this node (release); pairs with awaitNode. */
    public void signalNode(Region flags, int value) {
        long flag = flags.at(topology.nvlRank());
        for (int peer : masks.rails().near()) {
            nvl.signal(peer, flag, Word.of(epoch, value));
        }
    }

    /**
     * Waits until {@code peer} has left this call.
     *
     * @return the flag at {@code offset}, as of this call
     */
    private long awaitEnd(HostHeap heap, long offset, int peer) {
        startWait();
        long flag = heap.flag(offset);
        for (; Word.epoch(flag) != epoch; flag = heap.flag(offset)) {
            if (hasEndedWell(heap, offset, flag)) {
                return Word.of(epoch, FaultCode.OK.value());
            }
            idle(peer, FaultPhase.DONE, Integer.toUnsignedLong(epoch), flag);
        }
        return flag;
    }

    /**
     * Whether a peer ended this call well, which has left the next one as well since, as its flag
     * tells. As this rank is in the call still, the peer has given up all later ones, one after
     * another.
     */
    private boolean hasEndedWell(HostHeap heap, long at, long flag) {
        return Word.isLater(flag, epoch)
                && Word.value(flag) != FaultCode.OK.value()
                && heap.local().get(ValueLayout.JAVA_LONG, at + SINCE_OFFSET)
                        == Integer.toUnsignedLong(Word.epochAfter(epoch));
    }

    /** Ends the call if a word that {@code peer} stores in every call is of a later one. */
    void requireInStep(long word, int peer, FaultPhase phase) {
        if (Word.isLater(word, epoch)) {
            long expected = Integer.toUnsignedLong(epoch);
            long seen = Integer.toUnsignedLong(Word.epoch(word));
            throw raise(waitFault(FaultCode.OUT_OF_STEP, phase, peer, expected, seen));
        }
    }

    /** Looks at the words by which ranks that gave up tell so. */
    void requireNobodyGaveUp(FaultPhase phase) {
        for (int peer : masks.rails().near()) {
            if (peer != topology.rank()) {
                long at = flagOf(peer, doneFlags);
                long flag = nvl.flag(at);
                if (phase != FaultPhase.DONE || !hasEndedWell(nvl, at, flag)) {
                    requireInStep(flag, peer, phase);
                }
                requireNotGivenUp(nvl, at, peer, phase);
            }
        }
        for (int contact : masks.rails().contacts()) {
            requireNotGivenUp(rdma, endings.at(contact), contact, phase);
        }
    }

    private void requireNotGivenUp(HostHeap heap, long at, int peer, FaultPhase phase) {
        long flag = heap.flag(at);
        if (peer == topology.rank() || Word.epoch(flag) != epoch) {
            return;
        }
        if (FaultMessages.isAbort(FaultCode.of(Word.value(flag)))) {
            throw raise(toldFault(heap, at, flag, peer, phase));
        }
    }

    /** The fault that a peer tells by a flag. */
    private Fault toldFault(HostHeap heap, long at, long flag, int peer, FaultPhase phase) {
        MemorySegment memory = heap.local();
        long detail = memory.get(ValueLayout.JAVA_LONG, at + DETAIL_OFFSET);
        int culprit = (int) memory.get(ValueLayout.JAVA_LONG, at + CULPRIT_OFFSET);
        if (Word.value(flag) == FaultCode.TOO_MANY_EXPANDED.value()) {
            return Fault.ofRoom(
                    FaultCode.TOO_MANY_EXPANDED,
                    culprit,
                    detail >>> Integer.SIZE,
                    detail & 0xffffffffL);
        }
        return Fault.ofAborted(
                        phase,
                        topology.rank(),
                        peer,
                        (int) detail,
                        Integer.toUnsignedLong(epoch),
                        Word.value(flag))
                .after(waiter.waitedNanos());
    }

    // ---- faults ----

    /** Notes a fault; the first of a call counts. */
    public void record(Fault found) {
        fault = fault == null ? found : fault;
    }

    /** The exception of a fault that ends the call. */
    public RuntimeException raise(Fault found) {
        fault = found;
        masks.learn(found);
        return messages.failure(found);
    }

    /** The failure of the call, or null. */
    public RuntimeException failure() {
        return fault == null ? null : messages.failure(fault);
    }

    // ---- leaving ----

    /**
     * Leaves the call with the ranks of this node.
     *
     * @param everywhere whether all nodes must learn first how the call ended
     */
    public void leave(boolean everywhere) {
        if (everywhere || masksTimedOut) {
            tellNodes();
            for (int contact : masks.rails().contacts()) {
                long at = endings.at(contact);
                noteEnd(awaitEnd(rdma, at, contact), rdma, at, contact);
            }
        }
        tellNode();
        for (int peer : masks.rails().near()) {
            long at = flagOf(peer, doneFlags);
            noteEnd(awaitEnd(nvl, at, peer), nvl, at, peer);
        }
        endWaits();
    }

    /** Where others may be in the next call, they have patience after one that was given up. */
    private void endWaits() {
        boolean together = masksTimedOut || !topology.isInternode();
        if (together || !FaultMessages.isAbort(FaultCode.of(toldCode()))) {
            waits.end();
        }
    }

    private void noteEnd(long flag, HostHeap heap, long at, int peer) {
        if (Word.value(flag) != FaultCode.OK.value() && peer != topology.rank()) {
            record(toldFault(heap, at, flag, peer, FaultPhase.DONE));
        }
    }

    /**
     * Leaves a call that failed, without waiting, and returns the failure. What all ranks concluded
     * alike they know; of everything else this rank tells whom it waits for no longer.
     */
    public <T extends Throwable> T abandon(T failure) {
        if (!Fault.isAgreed(failure)) {
            if (fault == null || !FaultMessages.isAbort(fault.code())) {
                int culprit =
                        failure instanceof DeepEpTimeoutException late
                                ? late.peer()
                                : topology.rank();
                long expected = Integer.toUnsignedLong(epoch);
                fault = waitFault(FaultCode.TIMEOUT, FaultPhase.NONE, culprit, expected, 0);
            }
            tellNodes();
        }
        tellNode();
        endWaits();
        return failure;
    }

    /** Tells the ranks of this node; pairs with leave and requireNobodyGaveUp. */
    private void tellNode() {
        int code = toldCode();
        if (code != FaultCode.OK.value()) {
            for (int peer : masks.rails().near()) {
                tellMore(nvl.of(peer), doneFlags.at(topology.nvlRank()));
            }
        }
        signalNode(doneFlags, code);
        toldSince = code == FaultCode.OK.value() ? 0 : since();
    }

    /** Tells the contacts on other nodes; pairs with leave and requireNobodyGaveUp. */
    private void tellNodes() {
        for (int contact : masks.rails().contacts()) {
            long at = endings.at(topology.rank());
            tellMore(rdma.of(contact), at);
            rdma.signal(contact, at, Word.of(epoch, toldCode()));
        }
    }

    private int toldCode() {
        boolean told =
                fault != null
                        && (FaultMessages.isAbort(fault.code())
                                || fault.code() == FaultCode.TOO_MANY_EXPANDED);
        return told ? fault.code().value() : FaultCode.OK.value();
    }

    /** What a fault is about: whom this rank gave up on, or the rows it needs and has room for. */
    private void tellMore(MemorySegment memory, long at) {
        if (fault == null) {
            return;
        }
        long detail =
                switch (fault.code()) {
                    case TOO_MANY_EXPANDED -> Word.of((int) fault.seen(), (int) fault.expected());
                    case PEER_ABORTED -> fault.k();
                    default -> fault.peer();
                };
        memory.set(ValueLayout.JAVA_LONG, at + DETAIL_OFFSET, detail);
        memory.set(ValueLayout.JAVA_LONG, at + CULPRIT_OFFSET, fault.at());
        memory.set(ValueLayout.JAVA_LONG, at + SINCE_OFFSET, Integer.toUnsignedLong(since()));
    }

    /** The first of the calls that this rank has ended with a code, if it ends this one so. */
    private int since() {
        return toldSince == 0 ? epoch : toldSince;
    }

    /** The flag here that a rank of this node sets. */
    private long flagOf(int rank, Region flags) {
        return flags.at(rank % topology.numNvlRanks());
    }
}
