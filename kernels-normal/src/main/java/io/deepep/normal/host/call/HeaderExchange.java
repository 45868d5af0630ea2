package io.deepep.normal.host.call;

import io.deepep.EpTopology;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.host.HostHeap;
import io.deepep.normal.FaultMessages;
import io.deepep.normal.HeaderWord;
import io.deepep.normal.Masks;
import io.deepep.normal.NormalCall;
import io.deepep.normal.Rails;
import io.deepep.spi.Fault;
import io.deepep.spi.FaultCode;
import io.deepep.spi.FaultPhase;
import io.deepep.spi.Region;
import io.deepep.spi.Word;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * The header exchange that opens every call. A rank's header goes straight to the ranks of its
 * node; to another node it goes by RDMA to its peer there, which relays it, see {@link Rails}. All
 * headers read means that all ranks have entered the call, so rows of the call before may be
 * overwritten, and that all come to the same verdict.
 *
 * <p>Headers alternate between two slots: a peer may open call e + 1 while this rank still reads
 * its header of e, but not e + 2, because that needs this rank's header of e + 1.
 */
public final class HeaderExchange {
    private final EpTopology topology;
    private final HostHeap nvl;
    private final HostHeap rdma;
    private final CallExchange exchange;
    private final Region slots;
    private final Region images;
    private final Region imageFlags;
    private final int firstCount;
    private final int firstExpert;

    /** This rank's words, counts and, from {@link #firstExpert}, selections of all experts. */
    private final int[] mine;

    /** The header of a peer as it came over the network. */
    private final int[] image;

    private final boolean[] relayed;
    private int numSeen;

    /** Of one rank, whose state has all but this by now. */
    HeaderExchange(HostNormalState state) {
        topology = state.topology;
        nvl = state.context.nvl();
        rdma = state.context.rdma();
        exchange = state.exchange;
        slots = state.nvlLayout.headers();
        images = state.rdmaLayout.headers();
        imageFlags = state.rdmaLayout.headerFlags();
        firstCount = HeaderWord.firstCount(topology);
        firstExpert = HeaderWord.firstExpert(topology);
        mine = new int[firstExpert + state.limits.maxExperts()];
        image = new int[(int) (state.rdmaLayout.headerBytes() / Integer.BYTES)];
        relayed = new boolean[topology.isInternode() ? topology.numRanks() : 0];
    }

    // ---- this rank's header ----

    /** Begins it. */
    public void start(NormalCall call) {
        Arrays.fill(mine, 0);
        set(HeaderWord.OP, call.value());
    }

    public void set(HeaderWord word, int value) {
        mine[word.value()] = value;
    }

    /** A number of two words, of which {@code low} is the first. */
    public void setLong(HeaderWord low, long value) {
        mine[low.value()] = (int) value;
        mine[low.value() + 1] = (int) (value >>> Integer.SIZE);
    }

    /** What is wrong with this rank's routing. */
    public void setStatus(Fault fault) {
        set(HeaderWord.STATUS, fault.code().value());
        set(HeaderWord.STATUS_TOKEN, fault.token());
        set(HeaderWord.STATUS_K, fault.k());
        setLong(HeaderWord.STATUS_VALUE_LOW, fault.seen());
    }

    public void setCounts(int[] tokensPerRank, int[] selectionsPerExpert) {
        System.arraycopy(tokensPerRank, 0, mine, firstCount, tokensPerRank.length);
        System.arraycopy(selectionsPerExpert, 0, mine, firstExpert, selectionsPerExpert.length);
    }

    // ---- the exchange ----

    /**
     * Enters the next call: publishes this rank's header, waits for all others' and judges them.
     * After a failure the rank has left the call.
     */
    public void open(FaultMessages messages) {
        exchange.enter(messages);
        try {
            deliver(topology.rank(), mine, firstExpert + firstExpertOf(topology.rdmaRank(), mine));
            sendToNodes();
            collect();
            judge();
            exchange.noteBegun();
        } catch (RuntimeException failure) {
            throw exchange.abandon(failure);
        }
    }

    private int parity() {
        return exchange.epoch() & 1;
    }

    private static boolean hasCounts(int[] words) {
        return words[HeaderWord.OP.value()] == NormalCall.DISPATCH.value();
    }

    private int numWords(int[] words) {
        return hasCounts(words) ? firstExpert : HeaderWord.HEADER_WORDS;
    }

    private int expertsPerRank(int[] words) {
        return hasCounts(words) ? words[HeaderWord.NUM_EXPERTS.value()] / topology.numRanks() : 0;
    }

    private int firstExpertOf(int node, int[] words) {
        return node * topology.numNvlRanks() * expertsPerRank(words);
    }

    /** Hands a header to the ranks of this node, each with the counts of its own experts. */
    private void deliver(int source, int[] words, int firstSelection) {
        int numWords = numWords(words);
        int numExperts = expertsPerRank(words);
        int epoch = exchange.epoch();
        long slot = slots.at(parity(), source);
        for (int peer : rails().near()) {
            MemorySegment there = nvl.of(peer);
            for (int w = 1; w < numWords; w++) {
                there.set(ValueLayout.JAVA_LONG, slot + 8L * w, Word.of(epoch, words[w]));
            }
            int first = firstSelection + peer % topology.numNvlRanks() * numExperts;
            for (int e = 0; e < numExperts; e++) {
                long at = slot + 8L * (numWords + e);
                there.set(ValueLayout.JAVA_LONG, at, Word.of(epoch, words[first + e]));
            }
            nvl.signal(peer, slot, Word.of(epoch, words[0])); // release; pairs with hasArrived
        }
    }

    private void sendToNodes() {
        int numWords = numWords(mine);
        int numExperts = expertsPerRank(mine) * topology.numNvlRanks();
        for (int peer : rails().contacts()) {
            MemorySegment there = rdma.of(peer);
            long at = images.at(topology.rank(), parity());
            int first = firstExpert + firstExpertOf(peer / topology.numNvlRanks(), mine);
            copy(mine, 0, there, at, numWords);
            copy(mine, first, there, at + 4L * numWords, numExperts);
            long flag = imageFlags.at(topology.rank(), parity());
            rdma.signal(peer, flag, Word.of(exchange.epoch(), 0)); // release; pairs with relay
        }
    }

    private static void copy(int[] from, int first, MemorySegment to, long at, int count) {
        MemorySegment.copy(from, first, to, ValueLayout.JAVA_INT, at, count);
    }

    private void collect() {
        numSeen = 0;
        Arrays.fill(relayed, false);
        exchange.startWait();
        // A rank that begins a call long after the others left it still has its contacts' headers.
        // It hands them to nobody: its neighbours are in later calls, with headers in those slots.
        exchange.requireNobodyGaveUp(FaultPhase.HEADER);
        while (!isComplete()) {
            if (relay()) {
                exchange.progress();
            } else if (isRefused()) {
                return;
            } else {
                idle();
            }
        }
    }

    /**
     * Waits a little. Who gives up notes all that it lacks; who is told that another gave up does
     * so too if its own time is over soon.
     */
    private void idle() {
        int missing = absentRank(numSeen);
        long seen = nvl.flag(slots.at(parity(), missing));
        long epoch = Integer.toUnsignedLong(exchange.epoch());
        try {
            exchange.idle(missing, relayOf(missing), FaultPhase.HEADER, epoch, seen);
        } catch (DeepEpTimeoutException ended) {
            long told = System.nanoTime();
            while (exchange.mayWaitOn(told) && lacksMoreThan(ended.peer()) && !isRefused()) {
                relay();
                exchange.pause();
            }
            if (exchange.hasExpired()) {
                noteLost();
            }
            throw ended;
        }
    }

    /** Whether some other rank than {@code named} is lost, as far as the group does not know. */
    private boolean lacksMoreThan(int named) {
        for (int rank = 0; rank < topology.numRanks(); rank++) {
            if (rank != named && isLost(rank) && !exchange.isGone(rank)) {
                return true;
            }
        }
        return false;
    }

    private void noteLost() {
        for (int rank = 0; rank < topology.numRanks(); rank++) {
            if (isLost(rank)) {
                exchange.masks.suspect(rank);
            }
        }
    }

    /** Whether a rank that this one hears itself has not come and has not said that it waits. */
    private boolean isLost(int rank) {
        boolean near = rank / topology.numNvlRanks() == topology.rdmaRank();
        return (near || rails().isContact(rank))
                && !isMasked(rank)
                && !hasArrived(rank)
                && exchange.isSilent(rank);
    }

    /**
     * Whether a rank that came has another mask than this one: then all refuse the call, and adopt
     * each other's masks. They do not wait for more headers: which ranks exchange them depends on
     * the masks, and others may have given up those that are missing. Where none are masked by a
     * time-out, those may still be in the call before.
     */
    private boolean isRefused() {
        Masks masks = exchange.masks;
        boolean adopts = exchange.masksTimedOut && masks.namesRanks();
        for (int rank = 0; adopts && rank < topology.numRanks(); rank++) {
            if (isHeard(rank) && word(rank, HeaderWord.MASKED) != masks.word()) {
                return true;
            }
        }
        return false;
    }

    /** Whether a rank takes part, and its header of this call is here. */
    private boolean isHeard(int rank) {
        long flag = nvl.flag(slots.at(parity(), rank));
        return !isMasked(rank) && Word.epoch(flag) == exchange.epoch();
    }

    /** Passes headers of other nodes on to this node; true if there was one. */
    private boolean relay() {
        boolean worked = false;
        for (int peer : rails().contacts()) {
            long flag = relayed[peer] ? 0 : rdma.flag(imageFlags.at(peer, parity()));
            if (isHere(flag)) {
                exchange.requireInStep(flag, peer, FaultPhase.HEADER);
                long at = images.at(peer, parity());
                MemorySegment.copy(rdma.local(), ValueLayout.JAVA_INT, at, image, 0, image.length);
                deliver(peer, image, numWords(image));
                relayed[peer] = true;
                worked = true;
            }
        }
        return worked;
    }

    private boolean isHere(long word) {
        return Word.epoch(word) == exchange.epoch() || Word.isLater(word, exchange.epoch());
    }

    private boolean hasArrived(int rank) {
        return isHere(nvl.flag(slots.at(parity(), rank)));
    }

    /** This rank's own slots are among those that it relays into: then all is relayed. */
    private boolean isComplete() {
        while (numSeen < topology.numRanks() && (isMasked(numSeen) || hasArrived(numSeen))) {
            if (!isMasked(numSeen)) {
                exchange.requireInStep(
                        nvl.flag(slots.at(parity(), numSeen)), numSeen, FaultPhase.HEADER);
            }
            numSeen++;
        }
        return numSeen == topology.numRanks();
    }

    /** The rank whose header is missing, or who should have relayed it if its own did not come. */
    private int absentRank(int rank) {
        return hasArrived(relayOf(rank)) ? rank : relayOf(rank);
    }

    /** Who brings the header of a rank here: that rank itself, or one of this node. */
    private int relayOf(int rank) {
        int relay = topology.rankOf(topology.rdmaRank(), rank % topology.numNvlRanks());
        return rails().isContact(rank) || isMasked(relay) ? rank : relay;
    }

    private Rails rails() {
        return exchange.masks.rails();
    }

    /**
     * What all ranks conclude alike: whether they make the same call with the same experts, without
     * which indices cannot be judged, then a rank's own status, then other words that differ.
     */
    private void judge() {
        requireEqual(0, HeaderWord.HIDDEN.value());
        for (int rank = 0; rank < topology.numRanks(); rank++) {
            int status = isHeard(rank) ? word(rank, HeaderWord.STATUS) : 0;
            if (status != FaultCode.OK.value()) {
                throw exchange.raise(
                        Fault.ofRouting(
                                FaultCode.of(status),
                                rank,
                                word(rank, HeaderWord.STATUS_TOKEN),
                                word(rank, HeaderWord.STATUS_K),
                                longOf(rank, HeaderWord.STATUS_VALUE_LOW)));
            }
        }
        requireEqual(HeaderWord.HIDDEN.value(), HeaderWord.NUM_COMPARED);
    }

    private void requireEqual(int from, int to) {
        int first = 0;
        while (!isHeard(first)) {
            first++;
        }
        for (int rank = first + 1; rank < topology.numRanks(); rank++) {
            for (int w = from; w < to && isHeard(rank); w++) {
                if (word(rank, w) != word(first, w)) {
                    throw exchange.raise(
                            new Fault(
                                    FaultCode.HEADER_MISMATCH,
                                    FaultPhase.NONE,
                                    rank,
                                    first,
                                    -1,
                                    w,
                                    word(first, w),
                                    word(rank, w)));
                }
            }
        }
    }

    // ---- headers of all ranks, once open ----

    /** Whether a rank is left out: it has no header. */
    public boolean isMasked(int rank) {
        return exchange.masks.contains(rank);
    }

    /** A word of a rank's header. */
    public int word(int rank, HeaderWord word) {
        return word(rank, word.value());
    }

    /** A number of two words, of which {@code low} is the first. */
    public long longOf(int rank, HeaderWord low) {
        long high = word(rank, low.value() + 1);
        return high << Integer.SIZE | Integer.toUnsignedLong(word(rank, low));
    }

    private int word(int rank, int idx) {
        long at = slots.at(parity(), rank) + 8L * idx;
        long word = nvl.local().get(ValueLayout.JAVA_LONG, at);
        if (Word.epoch(word) != exchange.epoch()) {
            throw new IllegalStateException(
                    "word %d of the header of rank %d is of call %d, not %d"
                            .formatted(idx, rank, Word.epoch(word), exchange.epoch()));
        }
        return Word.value(word);
    }

    /** Dispatch: rows that {@code source} sends to {@code destination}. */
    public int rows(int source, int destination) {
        return isMasked(source) ? 0 : word(source, firstCount + destination);
    }

    /** Dispatch: selections by all ranks of this rank's {@code localExpert}. */
    public int selections(int localExpert) {
        int selections = 0;
        for (int source = 0; source < topology.numRanks(); source++) {
            selections += isMasked(source) ? 0 : word(source, firstExpert + localExpert);
        }
        return selections;
    }
}
