package io.deepep.normal;

import io.deepep.EpTopology;
import java.util.Arrays;
import java.util.BitSet;
import java.util.stream.IntStream;

/**
 * Who serves whom across nodes. A token crosses the network to its <em>forwarder</em> on each node,
 * which hands it on there, and sums for it on the way back: the rank with the sender's nvlRank, or
 * a stand-in if that is masked. All ranks find the same from the same masks.
 *
 * <p>Rows lie in cells of the forwarder's memory: one cell for each other node, and spare ones,
 * beginning with the cell of its own node, which is idle. On a node with {@code n} ranks left, the
 * {@code q}-th rank elsewhere whose forwarder there is masked gets the {@code q % n}-th of them,
 * and its spare cell {@code q / n}. There are enough spare cells for one masked rank per node. A
 * rank that finds none free has no stand-in: its selections on that node count as absent.
 *
 * <p>Headers and endings go to the rank with the sender's nvlRank, which relays headers. While any
 * rank is masked, they go to all ranks of other nodes instead: then each hears of each, though
 * their masks differ.
 */
public final class Rails {
    private static final int NONE = -1;

    /**
     * The ranks that this one exchanges rows with in one of its two parts. Place {@code i} is also
     * the cell of this rank's memory in which the other writes.
     */
    public static final class Ends {
        private final int[] ranks;
        private final int[] cells;

        private Ends(int size) {
            this.ranks = new int[size];
            this.cells = new int[size];
        }

        private void clear() {
            Arrays.fill(ranks, NONE);
        }

        private void set(int place, int rank, int cell) {
            ranks[place] = rank;
            cells[place] = cell;
        }

        /** Places, used or not. */
        public int size() {
            return ranks.length;
        }

        /** Whether there is a rank at that place. */
        public boolean isUsed(int place) {
            return ranks[place] != NONE;
        }

        /** The rank at that place. */
        public int rank(int place) {
            return ranks[place];
        }

        /** The cell of its memory in which this rank writes. */
        public int cell(int place) {
            return cells[place];
        }
    }

    private final EpTopology topology;
    private final Ends forwarders;
    private final Ends homes;
    private final boolean[] reached;
    private int[] near;
    private int[] contacts;
    private BitSet direct;

    /** Of the rank of {@code topology}. */
    Rails(EpTopology topology) {
        this.topology = topology;
        this.forwarders = new Ends(topology.numRdmaRanks());
        this.homes = new Ends(numCells(topology));
        this.reached = new boolean[topology.numRanks()];
    }

    /** Cells for rows in a rank's memory: enough for one masked rank on each node. */
    public static int numCells(EpTopology topology) {
        if (!topology.isInternode()) {
            return 0;
        }
        int others = topology.numRdmaRanks() - 1;
        int left = topology.numNvlRanks() - 1;
        return others + (left == 0 ? 1 : Math.ceilDiv(others, left));
    }

    void route(Masks masks) {
        forwarders.clear();
        homes.clear();
        for (int node = 0; node < topology.numRdmaRanks(); node++) {
            routeInto(node, masks);
        }
        for (int rank = 0; rank < reached.length; rank++) {
            int node = rank / topology.numNvlRanks();
            boolean near = node == topology.rdmaRank();
            reached[rank] = !masks.contains(rank) && (near || forwarders.isUsed(node));
        }
        near = left(topology.rdmaRank(), masks);
        contacts =
                IntStream.range(0, topology.numRanks())
                        .filter(rank -> rank / topology.numNvlRanks() != topology.rdmaRank())
                        .filter(rank -> !masks.contains(rank))
                        .filter(rank -> !masks.isEmpty() || isPeer(rank))
                        .toArray();
        direct = new BitSet();
        Arrays.stream(contacts).forEach(direct::set);
    }

    private boolean isPeer(int rank) {
        return rank % topology.numNvlRanks() == topology.nvlRank();
    }

    private int[] left(int node, Masks masks) {
        return IntStream.range(0, topology.numNvlRanks())
                .map(nvlRank -> topology.rankOf(node, nvlRank))
                .filter(rank -> !masks.contains(rank))
                .toArray();
    }

    private void routeInto(int node, Masks masks) {
        int[] left = left(node, masks);
        int numDetours = 0;
        for (int source = 0; source < topology.numRanks(); source++) {
            int sourceNode = source / topology.numNvlRanks();
            int regular = topology.rankOf(node, source % topology.numNvlRanks());
            if (sourceNode == node || masks.contains(source) || left.length == 0) {
                continue;
            }
            if (!masks.contains(regular)) {
                connect(source, regular, sourceNode);
            } else {
                int cell = spareCell(node, numDetours / left.length);
                if (cell < homes.size()) {
                    connect(source, left[numDetours % left.length], cell);
                }
                numDetours++;
            }
        }
    }

    private int spareCell(int node, int idx) {
        return idx == 0 ? node : topology.numRdmaRanks() + idx - 1;
    }

    private void connect(int home, int forwarder, int cell) {
        if (home == topology.rank()) {
            forwarders.set(forwarder / topology.numNvlRanks(), forwarder, cell);
        }
        if (forwarder == topology.rank()) {
            homes.set(cell, home, topology.rdmaRank());
        }
    }

    /** The forwarders of this rank's tokens, by node; none on its own. */
    public Ends forwarders() {
        return forwarders;
    }

    /** The ranks whose tokens this one forwards, by cell. */
    public Ends homes() {
        return homes;
    }

    /** Whether tokens of this rank get to {@code rank}. */
    public boolean reaches(int rank) {
        return reached[rank];
    }

    /** The ranks of this node that are left, this one among them. */
    public int[] near() {
        return near;
    }

    /** The ranks of other nodes that this one exchanges headers and endings with. */
    public int[] contacts() {
        return contacts;
    }

    /** Whether {@code rank} is one of {@link #contacts}. */
    public boolean isContact(int rank) {
        return direct.get(rank);
    }
}
