package io.deepep.spi;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.error.RankMismatchException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

/**
 * Finds the number of ranks per node: the number that all ranks gave or, if they gave none, the
 * number that follows from where they run. In the latter case, a node is an NVLink domain, which
 * may span hosts, if all GPUs name theirs; otherwise it is a host. Domains and hosts with more
 * ranks than a node may have are divided into equal nodes.
 */
public final class NodeSize {
    private static final String CURE = "; or give ranksPerNode on all ranks";

    private NodeSize() {}

    /** The call in which the ranks meet. */
    public enum Call {
        /** All ranks open a buffer. */
        OPEN("open()"),
        /** Some ranks have a buffer, and others join it. */
        JOIN("join() or admit()");

        private final String text;

        Call(String text) {
            this.text = text;
        }

        @Override
        public String toString() {
            return text;
        }
    }

    /**
     * Where a rank runs, as it tells the others.
     *
     * @param call the call that it makes
     * @param given its ranksPerNode; 0 if it gave none
     * @param localSize number of ranks on its host
     * @param domain the NVLink domain of its GPU; empty if that does not extend beyond the host
     */
    record Place(Call call, int given, int localSize, String domain) {
        private static final Pattern SAID =
                Pattern.compile("(OPEN|JOIN) (\\d{1,9}) (\\d{1,9}) (.*)");

        byte[] encode() {
            return (call.name() + " " + given + " " + localSize + " " + domain)
                    .getBytes(StandardCharsets.UTF_8);
        }

        static Place decode(int rank, byte[] message) {
            Matcher said = SAID.matcher(new String(message, StandardCharsets.UTF_8));
            if (!said.matches()) {
                throw RankMismatchException.ofCall("open", rank);
            }
            return new Place(
                    Call.valueOf(said.group(1)),
                    Integer.parseInt(said.group(2)),
                    Integer.parseInt(said.group(3)),
                    said.group(4));
        }
    }

    /**
     * Agrees with the other ranks on the number of ranks per node. Collective.
     *
     * @param call the call that this rank makes
     * @param given this rank's ranksPerNode, or that of the buffer that it already has; 0 for none
     * @param domain the NVLink domain of this rank's GPU, see {@link BufferProvider#nvlinkDomain}
     * @param timeout how long to wait for the other ranks
     * @throws RankMismatchException on every rank, if ranks make different calls, or some open with
     *     ranksPerNode and others without
     * @throws IllegalArgumentException on every rank, if the nodes would have different sizes
     */
    public static int agree(
            Communicator communicator, Call call, int given, String domain, Duration timeout) {
        Place own = new Place(call, given, communicator.localSize(), domain);
        List<Place> places = Meeting.gather(communicator, own.encode(), timeout, Place::decode);
        for (int rank = 1; rank < places.size(); rank++) {
            Call other = places.get(rank).call;
            if (places.getFirst().call != other) {
                throw RankMismatchException.of(
                        "open", "the call", 0, places.getFirst().call, rank, other);
            }
        }
        if (call == Call.JOIN) {
            IntStream known = places.stream().mapToInt(Place::given).filter(size -> size != 0);
            return given != 0 ? given : known.findFirst().orElse(1);
        }
        requireAllOrNone(places);
        return given != 0 ? given : part(of(places));
    }

    private static void requireAllOrNone(List<Place> places) {
        for (int rank = 1; rank < places.size(); rank++) {
            if ((places.get(rank).given == 0) != (places.getFirst().given == 0)) {
                int giver = places.getFirst().given == 0 ? rank : 0;
                throw new RankMismatchException(
                        "open: rank %2$s gave ranksPerNode=%1$s, but rank %3$s gave none; give it on all ranks or on none"
                                .formatted(places.get(giver).given, giver, rank - giver));
            }
        }
    }

    /** Number of ranks of each domain or host. */
    static int of(List<Place> places) {
        boolean inDomains = places.stream().noneMatch(place -> place.domain.isEmpty());
        Map<String, Integer> sizes = new HashMap<>();
        for (int rank = 0; inDomains && rank < places.size(); rank++) {
            String domain = places.get(rank).domain;
            if (sizes.merge(domain, 1, Integer::sum) > 1
                    && !places.get(rank - 1).domain.equals(domain)) {
                throw new IllegalArgumentException(
                        ("the ranks of an NVLink domain must have consecutive numbers, but ranks of other domains, such as"
                                        + " rank %3$s, are between those of the domain of rank %1$s (%2$s); order hosts by domain%4$s")
                                .formatted(rank, domain, rank - 1, CURE));
            }
        }
        int first = inDomains ? sizes.get(places.getFirst().domain) : places.getFirst().localSize;
        for (int rank = 1; rank < places.size(); rank++) {
            Place place = places.get(rank);
            int size = inDomains ? sizes.get(place.domain) : place.localSize;
            if (size != first) {
                String what = inDomains ? "NVLink domain" : "host";
                throw new IllegalArgumentException(
                        ("all nodes must have the same number of ranks, but the %s of rank 0 has %s and that of rank %s has %s;"
                                        + " start the same number on each%s")
                                .formatted(what, first, rank, size, CURE));
            }
        }
        return first;
    }

    /** The largest divisor of {@code size} that a node may have. */
    static int part(int size) {
        return IntStream.iterate(Math.min(size, EpTopology.MAX_NVL_RANKS), part -> part - 1)
                .filter(part -> size % part == 0)
                .findFirst()
                .orElseThrow();
    }
}
