package io.deepep.testkit.conformance.mutation;

import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.conformance.Misuse;
import io.deepep.testkit.conformance.RankContext;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;

/** Tensors as a confused caller gives them: another shape, type, memory or content than wanted. */
final class TensorMutations {
    private static final long[] EXTREMES = {
        Long.MIN_VALUE, -2, -1, 0, 1, 2, 7, 1L << 31, 1L << 62, Long.MAX_VALUE
    };
    private static final float[] FLOATS = {
        Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, Float.MAX_VALUE, -0f, 1e-40f
    };

    private final RankContext context;
    private final MemorySegment untouchable;
    private final SplittableRandom random;
    private final List<String> said = new ArrayList<>();

    /** Of a rank, with memory from {@link #ofAnotherThread}. */
    TensorMutations(RankContext context, MemorySegment untouchable, SplittableRandom random) {
        this.context = context;
        this.untouchable = untouchable;
        this.random = random;
    }

    /** A way to spoil a tensor, which gives null if it cannot be done to this one. */
    private record Named(String name, UnaryOperator<Tensor> way) {}

    /** Memory of a thread that has ended and left its arena open: it is there, and nobody's. */
    static MemorySegment ofAnotherThread() {
        return CompletableFuture.supplyAsync(
                        () -> Arena.ofConfined().allocate(1 << 20, 128),
                        task -> Thread.ofPlatform().start(task))
                .join();
    }

    /** What was done, for messages. */
    List<String> said() {
        return said;
    }

    /**
     * Spoils {@code good}.
     *
     * @param others what the plan has besides
     */
    Tensor spoil(String field, Tensor good, List<Tensor> others) {
        if (good == null) {
            said.add(field + " given");
            return allocate(dtype(), 10, 1);
        }
        List<Named> ways = new ArrayList<>(anywhere(others));
        if (context.device().isHost()) {
            ways.addAll(onHost());
        }
        while (true) {
            Named chosen = ways.get(random.nextInt(ways.size()));
            Tensor spoilt = chosen.way.apply(good);
            if (spoilt != null || chosen.name.equals("missing")) {
                said.add(field + " " + chosen.name + ": " + spoilt);
                return spoilt;
            }
        }
    }

    /** A number that may be anything. */
    int spoil(String field, int good) {
        int[] numbers = {
            Integer.MIN_VALUE, -1, 0, 1, 2, good - 1, good + 1, 1 << 16, 1 << 30, Integer.MAX_VALUE
        };
        int spoilt = numbers[random.nextInt(numbers.length)];
        said.add(field + "=" + spoilt);
        return spoilt;
    }

    private List<Named> anywhere(List<Tensor> others) {
        return List.of(
                new Named("missing", good -> null),
                new Named("of another type", good -> allocate(dtype(), good.shape())),
                new Named("of another size", this::resized),
                new Named("with one dimension more", this::deeper),
                new Named("with one dimension less", good -> good.rank() < 2 ? null : flat(good)),
                new Named("with gaps", this::withGaps),
                new Named("repeated", this::repeated),
                new Named("elsewhere", good -> Misuse.elsewhere(context, good)),
                new Named("in the buffer", this::inBuffer),
                new Named("over another", good -> over(good, others)),
                new Named("misaligned", this::misaligned),
                new Named("with other values", this::revalued));
    }

    private List<Named> onHost() {
        return List.of(
                new Named("in a closed arena", this::closed),
                new Named("of another thread", good -> at(untouchable, good)),
                new Named("confined", good -> at(ofSize(Arena.ofConfined(), good), good)),
                new Named("read-only", good -> at(copy(good).asReadOnly(), good)));
    }

    private DType dtype() {
        return DType.values()[random.nextInt(DType.values().length)];
    }

    private Tensor allocate(DType dtype, long... shape) {
        return context.upload(HostTensors.allocate(dtype, shape));
    }

    private Tensor resized(Tensor good) {
        long[] shape = good.shape();
        int dim = random.nextInt(shape.length);
        long[] sizes = {0, 1, shape[dim] - 1, shape[dim] + 1, 2 * shape[dim]};
        shape[dim] = Math.max(0, sizes[random.nextInt(sizes.length)]);
        return allocate(good.dtype(), shape);
    }

    private Tensor deeper(Tensor good) {
        long[] shape = new long[good.rank() + 1];
        System.arraycopy(good.shape(), 0, shape, random.nextInt(2), good.rank());
        shape[shape[0] == 0 ? 0 : good.rank()] = 1;
        return allocate(good.dtype(), shape);
    }

    private Tensor flat(Tensor good) {
        return allocate(good.dtype(), good.numElements());
    }

    private Tensor withGaps(Tensor good) {
        Tensor host = context.download(good);
        boolean matrix = good.rank() == 2;
        return context.upload(
                matrix && random.nextBoolean()
                        ? HostTensors.withColumnGap(host)
                        : HostTensors.withRowGap(host, 1 + random.nextInt(64)));
    }

    private Tensor repeated(Tensor good) {
        long[] strides = good.strides();
        strides[random.nextInt(strides.length)] = 0;
        return HostTensors.view(good, good.shape(), strides);
    }

    private Tensor inBuffer(Tensor good) {
        long bytes = good.numElements() * good.dtype().sizeBytes();
        Buffer buffer = context.buffer();
        boolean rdma = random.nextBoolean();
        long room = rdma ? buffer.options().numRdmaBytes() : buffer.options().numNvlBytes();
        if (room < bytes + 128) {
            return null;
        }
        long offset = 128 * random.nextLong((room - bytes) / 128 + 1);
        long elements = (room - offset) / good.dtype().sizeBytes();
        Tensor own = buffer.getLocalBufferTensor(good.dtype(), elements, offset, rdma);
        return at(own, 0, good);
    }

    private Tensor over(Tensor good, List<Tensor> others) {
        List<Tensor> large =
                others.stream()
                        .filter(other -> other != null && other != good)
                        .filter(
                                other ->
                                        other.extentBytes()
                                                >= good.numElements() * good.dtype().sizeBytes())
                        .toList();
        return large.isEmpty() ? null : at(large.get(random.nextInt(large.size())), 0, good);
    }

    private Tensor misaligned(Tensor good) {
        long[] shape = good.shape();
        shape[0]++;
        Tensor longer = allocate(good.dtype(), shape);
        long off = good.device().isHost() ? 1 : good.dtype().sizeBytes();
        return at(longer, off, good);
    }

    private Tensor revalued(Tensor good) {
        Tensor host = HostTensors.copyOf(context.download(good));
        if (host.numElements() == 0) {
            return null;
        }
        Tensor row = host;
        while (row.rank() > 1) {
            row = row.select(0, random.nextLong(row.size(0)));
        }
        long at = random.nextLong(row.size(0));
        switch (good.dtype()) {
            case BF16, FP8_E4M3, F32 -> row.setFloat(FLOATS[random.nextInt(FLOATS.length)], at);
            case I32, I64, BOOL -> row.setLong(EXTREMES[random.nextInt(EXTREMES.length)], at);
        }
        return context.upload(host);
    }

    private Tensor closed(Tensor good) {
        try (Arena arena = Arena.ofShared()) {
            return at(ofSize(arena, good), good);
        }
    }

    private static MemorySegment ofSize(Arena arena, Tensor good) {
        return arena.allocate(Math.max(1, good.numElements() * good.dtype().sizeBytes()), 128);
    }

    private static MemorySegment copy(Tensor good) {
        return HostTensors.copyOf(good).segment();
    }

    /**
     * A contiguous tensor like {@code good} in other memory of the host; null if it is too small.
     */
    private static Tensor at(MemorySegment memory, Tensor good) {
        long bytes = good.numElements() * good.dtype().sizeBytes();
        return memory.byteSize() < bytes ? null : Tensor.of(memory, good.dtype(), good.shape());
    }

    /** The same from so many bytes on behind the first of another tensor. */
    private static Tensor at(Tensor memory, long offset, Tensor good) {
        return memory.device().isHost()
                ? Tensor.of(memory.segment().asSlice(offset), good.dtype(), good.shape())
                : Tensor.onDevice(
                        memory.device(),
                        memory.address() + offset,
                        memory.capacityBytes() - offset,
                        good.dtype(),
                        good.shape(),
                        Tensor.contiguousStrides(good.shape()),
                        memory.owner());
    }
}
