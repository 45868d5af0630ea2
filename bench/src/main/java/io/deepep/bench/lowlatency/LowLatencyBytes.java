package io.deepep.bench.lowlatency;

import io.deepep.EpTopology;
import io.deepep.Fp8E4m3;
import io.deepep.LowLatencyFormat;
import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.run.Job;
import io.deepep.testkit.oracle.Traffic;
import io.deepep.testkit.routing.Routing;
import java.util.stream.LongStream;

/**
 * Bytes of low-latency operations. A token goes once to each destination rank; on the way back
 * every selection's row goes home by itself, or pre-reduced one row from each of these ranks.
 */
final class LowLatencyBytes {
    private static final long VECTOR_BYTES = 16;
    private static final long LOGFMT_BITS = 10;
    private static final long LOGFMT_BLOCK_HEADER = 8;

    private final Job job;
    private final Routing routing;

    LowLatencyBytes(Job job) {
        this.job = job;
        this.routing = job.routing();
    }

    /** Bytes of a row as it travels in a dispatch. Scales of every FP8 format travel as F32. */
    long rowBytes(LowLatencyFormat format) {
        long hidden = job.hidden();
        return format.isFp8() ? hidden + 4 * (hidden / Fp8E4m3.CHANNELS_PER_SCALE) : 2 * hidden;
    }

    /** Bytes of a row as it travels in a combine. */
    long combineRowBytes(CombineRows home) {
        long hidden = job.hidden();
        return home == CombineRows.LOGFMT
                ? hidden * LOGFMT_BITS / 8
                        + LOGFMT_BLOCK_HEADER * (hidden / Fp8E4m3.CHANNELS_PER_SCALE)
                : 2 * hidden;
    }

    /** Bytes of a dispatched row as GPUs send it: elements, scales, the token's selections. */
    long dispatchWireRowBytes(LowLatencyFormat format) {
        return Math.ceilDiv(rowBytes(format) + 4L * routing.numTopk(), VECTOR_BYTES) * VECTOR_BYTES;
    }

    /** Rows that ranks send one another: [from][to]. */
    interface Rows {
        /** Adds those of one token of {@code rank}. */
        void add(int rank, int token, long[][] sent);
    }

    /** A token goes once to each rank. */
    void dispatchRows(int rank, int token, long[][] sent) {
        for (int dest = 0; dest < job.numRanks(); dest++) {
            sent[rank][dest] += routing.goesTo(rank, token, dest) ? 1 : 0;
        }
    }

    /** Rows that go home. */
    Rows combineRows(CombineRows home) {
        return home == CombineRows.PRE_REDUCED ? this::rowOfEachRank : this::rowOfEachSelection;
    }

    private void rowOfEachRank(int rank, int token, long[][] sent) {
        for (int owner = 0; owner < job.numRanks(); owner++) {
            sent[owner][rank] += routing.goesTo(rank, token, owner) ? 1 : 0;
        }
    }

    private void rowOfEachSelection(int rank, int token, long[][] sent) {
        for (int k = 0; k < routing.numTopk(); k++) {
            int owner = routing.ownerOf(routing.expert(rank, token, k));
            if (owner >= 0) {
                sent[owner][rank]++;
            }
        }
    }

    /**
     * Rows that the ranks of the busiest GPU send to other ranks, or receive from them if these are
     * more. A single rank has only itself.
     */
    long busiestLinkRows(Rows rows) {
        int numRanks = job.numRanks();
        long[][] sent = new long[numRanks][numRanks];
        for (int rank = 0; rank < numRanks; rank++) {
            for (int token = 0; token < routing.numTokens(rank); token++) {
                rows.add(rank, token, sent);
            }
        }
        int places = job.placement().isCuda() ? job.placement().numGpus() : numRanks;
        long[] out = new long[places];
        long[] in = new long[places];
        for (int from = 0; from < numRanks; from++) {
            for (int to = 0; to < numRanks; to++) {
                if (from != to || numRanks == 1) {
                    out[from % places] += sent[from][to];
                    in[to % places] += sent[from][to];
                }
            }
        }
        return LongStream.concat(LongStream.of(out), LongStream.of(in)).max().orElseThrow();
    }

    /** What {@code rank}'s tokens send in a dispatch, in rows. */
    Traffic dispatchTraffic(int rank) {
        return Traffic.lowLatency(routing, job.topology(), rank);
    }

    /** Rows that go home to {@code rank}: one for each selection elsewhere, or for each rank. */
    Traffic combineTraffic(int rank, CombineRows home) {
        if (home == CombineRows.PRE_REDUCED) {
            return dispatchTraffic(rank); // as many as went out
        }
        EpTopology own = job.topology().withRank(rank);
        long nvlink = 0;
        long rdma = 0;
        for (int token = 0; token < routing.numTokens(rank); token++) {
            for (int k = 0; k < routing.numTopk(); k++) {
                int owner = routing.ownerOf(routing.expert(rank, token, k));
                if (owner >= 0 && owner != rank) {
                    boolean sameNode = own.withRank(owner).rdmaRank() == own.rdmaRank();
                    nvlink += sameNode ? 1 : 0;
                    rdma += sameNode ? 0 : 1;
                }
            }
        }
        return new Traffic(nvlink, rdma);
    }

    /**
     * All ranks' bytes of a dispatch: BF16 tokens are read, rows of {@code format} are received.
     */
    OperationBytes dispatch(LowLatencyFormat format) {
        Traffic all = new Traffic(0, 0);
        for (int rank = 0; rank < job.numRanks(); rank++) {
            all = all.plus(dispatchTraffic(rank));
        }
        long row = rowBytes(format);
        long logical = selections() * row;
        return new OperationBytes(
                logical,
                all.nvlinkRows() * row,
                all.rdmaRows() * row,
                tokens() * 2L * job.hidden() + logical);
    }

    /** All ranks' bytes of a combine: BF16 rows are read, BF16 tokens are written. */
    OperationBytes combine(CombineRows home) {
        Traffic all = new Traffic(0, 0);
        for (int rank = 0; rank < job.numRanks(); rank++) {
            all = all.plus(combineTraffic(rank, home));
        }
        long row = combineRowBytes(home);
        long logical = selections() * row;
        return new OperationBytes(
                logical,
                all.nvlinkRows() * row,
                all.rdmaRows() * row,
                (tokens() + selections()) * 2L * job.hidden());
    }

    private long tokens() {
        long tokens = 0;
        for (int rank = 0; rank < job.numRanks(); rank++) {
            tokens += routing.numTokens(rank);
        }
        return tokens;
    }

    private long selections() {
        long selections = 0;
        for (int rank = 0; rank < job.numRanks(); rank++) {
            for (int token = 0; token < routing.numTokens(rank); token++) {
                for (int k = 0; k < routing.numTopk(); k++) {
                    selections += routing.expert(rank, token, k) >= 0 ? 1 : 0;
                }
            }
        }
        return selections;
    }
}
