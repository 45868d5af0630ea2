package io.deepep.planner;

/** Rows that each rank sends and receives in one operation, by kind of link. */
final class LinkRows {
    final long[] nvlinkOut;
    final long[] nvlinkIn;
    final long[] rdmaOut;
    final long[] rdmaIn;

    LinkRows(int numRanks) {
        this(new long[numRanks], new long[numRanks], new long[numRanks], new long[numRanks]);
    }

    private LinkRows(long[] nvlinkOut, long[] nvlinkIn, long[] rdmaOut, long[] rdmaIn) {
        this.nvlinkOut = nvlinkOut;
        this.nvlinkIn = nvlinkIn;
        this.rdmaOut = rdmaOut;
        this.rdmaIn = rdmaIn;
    }

    /** The same ways backwards: what a combine does after a dispatch. */
    LinkRows reversed() {
        return new LinkRows(nvlinkIn, nvlinkOut, rdmaIn, rdmaOut);
    }

    void add(LinkRows other) {
        add(nvlinkOut, other.nvlinkOut);
        add(nvlinkIn, other.nvlinkIn);
        add(rdmaOut, other.rdmaOut);
        add(rdmaIn, other.rdmaIn);
    }

    static void add(long[] to, long[] from) {
        for (int i = 0; i < to.length; i++) {
            to[i] += from[i];
        }
    }
}
