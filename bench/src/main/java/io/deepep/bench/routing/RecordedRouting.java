package io.deepep.bench.routing;

import io.deepep.NormalLimits;
import io.deepep.bench.run.MemoryNeed;
import io.deepep.bench.run.OutputFile;
import io.deepep.bench.run.UsageException;
import io.deepep.testkit.routing.Routing;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Predicate;

/**
 * Top-k indices and weights from a file: [T,K], to be split among the ranks in order, or [R,T,K].
 *
 * <p>A {@code .npy} file holds the indices; weights come from a second one, or are 1/K. In a {@code
 * .safetensors} file the tensors are called {@code topk_idx} and {@code topk_weights}, or are the
 * only ones of integers and of floats.
 */
public final class RecordedRouting {
    /** Names in a {@code .safetensors} file. */
    static final String IDX = "topk_idx";

    static final String WEIGHTS = "topk_weights";

    /** An array's header and the reference to it. */
    private static final int ARRAY_BYTES = 24;

    private final String name;
    private final NamedArray idx;
    private final NamedArray weights;

    private RecordedRouting(String name, NamedArray idx, NamedArray weights) {
        this.name = name;
        this.idx = idx;
        this.weights = weights;
    }

    /**
     * Reads the file.
     *
     * @param weightsFile a second {@code .npy} file, or null
     * @throws UsageException if a file cannot be read or does not hold a routing
     */
    public static RecordedRouting read(Path file, Path weightsFile) {
        try {
            return check(load(file, weightsFile));
        } catch (RoutingFileException wrong) {
            throw new UsageException("--routing: " + wrong.getMessage());
        }
    }

    private static RecordedRouting load(Path file, Path weightsFile) {
        String name = file.toString();
        if (name.endsWith(".npy")) {
            NamedArray weights = weightsFile == null ? null : npy("--routing-weights", weightsFile);
            return new RecordedRouting(name, npy("--routing", file), weights);
        }
        if (name.endsWith(".safetensors")) {
            if (weightsFile != null) {
                throw new RoutingFileException(
                        "--routing-weights goes with a .npy file; put topk_weights into " + name);
            }
            List<NamedArray> arrays = SafetensorsReader.read(name, bytes("--routing", file));
            NamedArray idx = pick(arrays, IDX, array -> array.type().isInteger());
            if (idx == null) {
                throw new RoutingFileException(
                        name
                                + ": no topk_idx, and not exactly one integer tensor among "
                                + arrays.stream().map(NamedArray::name).toList());
            }
            return new RecordedRouting(
                    name, idx, pick(arrays, WEIGHTS, array -> !array.type().isInteger()));
        }
        throw new RoutingFileException(name + " ends neither in .npy nor in .safetensors");
    }

    private static NamedArray npy(String option, Path file) {
        try {
            return NpyReader.read(file.toString(), bytes(option, file));
        } catch (RoutingFileException wrong) {
            throw new UsageException(option + ": " + wrong.getMessage());
        }
    }

    /** The array called {@code key}, else the only one of its kind, else null. */
    private static NamedArray pick(
            List<NamedArray> arrays, String key, Predicate<NamedArray> kind) {
        List<NamedArray> candidates = arrays.stream().filter(kind).toList();
        return candidates.stream()
                .filter(array -> array.name().equals(key))
                .findFirst()
                .orElse(candidates.size() == 1 ? candidates.getFirst() : null);
    }

    /** The file's bytes, mapped: it may be larger than the heap. */
    private static ByteBuffer bytes(String option, Path file) {
        if (!Files.isRegularFile(file)) {
            throw new UsageException(option + ": there is no file " + file);
        }
        try (FileChannel channel = FileChannel.open(file)) {
            if (channel.size() > Integer.MAX_VALUE) {
                throw new UsageException(
                        "%s: %s has %d bytes; at most 2 GiB are read"
                                .formatted(option, file, channel.size()));
            }
            return channel.map(MapMode.READ_ONLY, 0, channel.size());
        } catch (IOException unreadable) {
            throw OutputFile.failed(option + ": cannot read", file, unreadable);
        }
    }

    private static RecordedRouting check(RecordedRouting read) {
        NamedArray idx = read.idx;
        if (!idx.type().isInteger()) {
            throw new RoutingFileException(idx + " is not of integers; indices must be I64 or I32");
        }
        if (idx.rank() < 2 || idx.rank() > 3) {
            throw new RoutingFileException(idx + " is neither [T,K] nor [R,T,K]");
        }
        long numTopk = idx.shape()[idx.rank() - 1];
        if (numTopk < 1 || numTopk > NormalLimits.MAX_TOPK) {
            throw new RoutingFileException(
                    "%s: K=%d is not in [1, %d]".formatted(idx, numTopk, NormalLimits.MAX_TOPK));
        }
        NamedArray weights = read.weights;
        if (weights != null && (weights.type().isInteger() || !weights.hasShapeOf(idx))) {
            throw new RoutingFileException(
                    "weights " + weights + " must be F32 of the shape of the indices, " + idx);
        }
        return read;
    }

    /** K. */
    public int numTopk() {
        return (int) idx.shape()[idx.rank() - 1];
    }

    /**
     * The routing for a group.
     *
     * @throws UsageException if the file is not for so many ranks or experts
     */
    public Routing forRanks(int numRanks, int numExperts) {
        if (idx.rank() == 3 && idx.shape()[0] != numRanks) {
            throw new UsageException(
                    "--routing: %s is for %s ranks, but the group has numRanks=%s"
                            .formatted(name, idx.shape()[0], numRanks));
        }
        requireHeap();
        long[][][] experts = new long[numRanks][][];
        float[][][] factors = new float[numRanks][][];
        for (int rank = 0; rank < numRanks; rank++) {
            int from = firstToken(rank, numRanks);
            int tokens = firstToken(rank + 1, numRanks) - from;
            experts[rank] = new long[tokens][numTopk()];
            factors[rank] = new float[tokens][numTopk()];
            for (int token = 0; token < tokens; token++) {
                fill(experts[rank][token], factors[rank][token], from + token);
            }
        }
        try {
            Routing routing = Routing.of(numExperts, numTopk(), experts, factors);
            if (routing.maxTokens() == 0) {
                throw new UsageException("--routing: " + name + " has no tokens");
            }
            return routing;
        } catch (IllegalArgumentException refused) {
            throw new UsageException("--routing: " + name + ": " + refused.getMessage());
        }
    }

    /** For a row of indices and one of weights of each token, once while they are copied. */
    private void requireHeap() {
        double tokens = (double) idx.numElements() / numTopk();
        double perToken = 2 * (2 * ARRAY_BYTES + numTopk() * (Long.BYTES + Float.BYTES));
        MemoryNeed.requireHeap("the tokens of --routing=" + name, tokens * perToken);
    }

    /**
     * The first row, counted over all ranks, that belongs to {@code rank}: tokens of [T,K] are
     * split as evenly as they can.
     */
    private int firstToken(int rank, int numRanks) {
        long[] shape = idx.shape();
        return (int) (idx.rank() == 3 ? rank * shape[1] : rank * shape[0] / numRanks);
    }

    private void fill(long[] experts, float[] factors, int row) {
        for (int k = 0; k < experts.length; k++) {
            int at = row * experts.length + k;
            experts[k] = idx.integerAt(at);
            factors[k] = weights == null ? 1f / experts.length : weights.floatAt(at);
            if (experts[k] >= 0 && !Float.isFinite(factors[k])) {
                throw new UsageException(
                        "--routing: weights %s: token %d, selection %d is %s, which is not finite"
                                .formatted(weights, row, k, factors[k]));
            }
        }
    }
}
