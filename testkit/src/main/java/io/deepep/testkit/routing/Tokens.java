package io.deepep.testkit.routing;

import io.deepep.DType;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.SplittableRandom;
import java.util.random.RandomGenerator;

/**
 * One rank's tokens on the host: BF16 rows, or FP8 rows with their scales.
 *
 * <p>Rows are recognisable: they begin with the numbers of {@link #mark}, so a row in a wrong place
 * can be told from a damaged one. The rest is drawn to exercise rounding. The memory is freed by
 * the garbage collector.
 *
 * @param x BF16 or FP8 [T,H], contiguous
 * @param scales F32 [T,H/128], contiguous; null for BF16
 */
public record Tokens(Tensor x, Tensor scales) {
    /** Elements at the beginning of a row that say whose it is. */
    public static final int MARK_ELEMENTS = 4;

    private static final int GROUP = 128;
    private static final int MARK_BASE = 128;

    /**
     * BF16 tokens. Groups of 128 channels differ in flavour: ordinary numbers, tiny ones down to
     * subnormals, huge ones, signed zeros, and all mixed.
     *
     * @param rank whose tokens they are
     */
    public static Tokens bf16(int rank, int numTokens, int hidden, long seed) {
        Tensor x = Tensor.allocate(Arena.ofAuto(), DType.BF16, numTokens, hidden);
        SplittableRandom random = new SplittableRandom(mix(seed, rank));
        short[] row = new short[hidden];
        for (int token = 0; token < numTokens; token++) {
            for (int from = 0; from < hidden; from += GROUP) {
                fill(random, row, from, Math.min(hidden, from + GROUP));
            }
            int[] mark = mark(rank, token);
            for (int i = 0; i < MARK_ELEMENTS; i++) {
                row[i] = bits(mark[i]);
            }
            long at = x.offsetBytes(token, 0);
            MemorySegment.copy(row, 0, x.segment(), ValueLayout.JAVA_SHORT_UNALIGNED, at, hidden);
        }
        return new Tokens(x, null);
    }

    /** FP8 tokens of every bit pattern, with positive scales of all magnitudes. */
    public static Tokens fp8(int rank, int numTokens, int hidden, long seed) {
        if (hidden % GROUP != 0) {
            throw new IllegalArgumentException(
                    "hidden=" + hidden + " is not a multiple of " + GROUP);
        }
        Tensor x = Tensor.allocate(Arena.ofAuto(), DType.FP8_E4M3, numTokens, hidden);
        Tensor scales = Tensor.allocate(Arena.ofAuto(), DType.F32, numTokens, hidden / GROUP);
        SplittableRandom random = new SplittableRandom(mix(seed, rank));
        byte[] row = new byte[hidden];
        for (int token = 0; token < numTokens; token++) {
            random.nextBytes(row);
            int[] mark = mark(rank, token);
            for (int i = 0; i < MARK_ELEMENTS; i++) {
                row[i] = (byte) mark[i];
            }
            long at = x.offsetBytes(token, 0);
            MemorySegment.copy(row, 0, x.segment(), ValueLayout.JAVA_BYTE, at, hidden);
            for (int group = 0; group < hidden / GROUP; group++) {
                double scale = Math.scalb(1 + random.nextDouble(), random.nextInt(-40, 40));
                scales.setFloat((float) scale, token, group);
            }
        }
        return new Tokens(x, scales);
    }

    /** Ordinary BF16 numbers of [rows, hidden], as experts would compute them. */
    public static Tensor expertOutputs(int rows, int hidden, long seed) {
        Tensor x = Tensor.allocate(Arena.ofAuto(), DType.BF16, rows, hidden);
        SplittableRandom random = new SplittableRandom(mix(seed, rows));
        short[] row = new short[hidden];
        for (int i = 0; i < rows; i++) {
            for (int h = 0; h < hidden; h++) {
                row[h] = ordinary(random);
            }
            long at = x.offsetBytes(i, 0);
            MemorySegment.copy(row, 0, x.segment(), ValueLayout.JAVA_SHORT_UNALIGNED, at, hidden);
        }
        return x;
    }

    /** The first {@link #MARK_ELEMENTS} numbers of a row, each in [0, 128), exact in BF16. */
    public static int[] mark(int rank, int token) {
        int high = token / MARK_BASE;
        return new int[] {
            rank % MARK_BASE, high / MARK_BASE % MARK_BASE, high % MARK_BASE, token % MARK_BASE
        };
    }

    /** Says whose row begins with {@code mark}, for messages. */
    public static String describe(int[] mark) {
        for (int part : mark) {
            if (part < 0 || part >= MARK_BASE) {
                return "no token's row";
            }
        }
        int token = (mark[1] * MARK_BASE + mark[2]) * MARK_BASE + mark[3];
        return "like rank " + mark[0] + ", token " + token;
    }

    private static void fill(RandomGenerator random, short[] row, int from, int to) {
        int flavour = random.nextInt(16);
        for (int h = from; h < to; h++) {
            row[h] =
                    switch (flavour == 15 ? random.nextInt(12, 15) : flavour) {
                        case 12 -> (short) (random.nextInt(0x0100) | sign(random)); // below 2^-125
                        case 13 ->
                                (short)
                                        (random.nextInt(0x6000, 0x7000)
                                                | sign(random)); // up to 2^97
                        case 14 -> (short) sign(random); // zeros
                        default -> ordinary(random);
                    };
        }
    }

    private static int sign(RandomGenerator random) {
        return random.nextBoolean() ? 0x8000 : 0;
    }

    /** Magnitudes from 2^-8 to 2^4, all mantissas. */
    private static short ordinary(RandomGenerator random) {
        return (short) (random.nextInt(0x3b80, 0x4180) | sign(random));
    }

    /** The BF16 pattern of a small integer, which is exact. */
    private static short bits(int value) {
        return (short) (Float.floatToRawIntBits(value) >>> 16);
    }

    private static long mix(long seed, long salt) {
        return (seed * 31 + salt + 1) * 0x9E3779B97F4A7C15L;
    }
}
