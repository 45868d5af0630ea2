package io.deepep.bench.run;

import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.bench.text.Lines;
import io.deepep.spi.Meeting;
import io.deepep.spi.posix.JobMemory;
import io.deepep.spi.posix.SharedMemory;
import io.deepep.testkit.HostTensors;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;

/**
 * Shows the processes of one host each other's host tensors: each copies its own into memory that
 * the others map.
 */
final class TensorExchange {
    private final int rank;
    private final Meeting meeting;
    private Arena arena = Arena.ofShared();

    TensorExchange(Communicator communicator, Duration timeout) {
        this.rank = communicator.rank();
        this.meeting =
                new Meeting(
                        communicator,
                        timeout,
                        "the processes cannot compare their results",
                        "run them in one PID namespace, or lower --num-tokens");
    }

    /** Where a tensor lies; no memory for a rank that has none, or one without elements. */
    record SharedTensor(String offer, DType dtype, List<Long> shape) {
        static final SharedTensor NONE = new SharedTensor("none", DType.BF16, List.of(0L));

        static SharedTensor of(Tensor tensor) {
            return new SharedTensor(
                    "", tensor.dtype(), LongStream.of(tensor.shape()).boxed().toList());
        }

        SharedTensor in(SharedMemory memory) {
            return new SharedTensor(JobMemory.offer(memory), dtype, shape);
        }

        long[] dimensions() {
            return shape.stream().mapToLong(Long::longValue).toArray();
        }

        long numBytes() {
            return LongStream.of(dimensions()).reduce(1, Math::multiplyExact) * dtype.sizeBytes();
        }
    }

    /**
     * Every rank's tensor: collective.
     *
     * @param mine may be null
     * @return valid until {@link #release}
     */
    List<Tensor> gather(Tensor mine) {
        SharedMemory[] own = new SharedMemory[1];
        try {
            JobMemory job = JobMemory.agree(meeting, () -> {});
            List<String> places =
                    meeting.together(
                            () -> {
                                SharedTensor place =
                                        mine == null ? SharedTensor.NONE : SharedTensor.of(mine);
                                if (place.numBytes() > 0) {
                                    own[0] = job.create(rank, place.numBytes());
                                    place = place.in(own[0]);
                                    copy(mine, own[0]);
                                }
                                return Lines.write(place);
                            });
            List<Tensor> tensors = new ArrayList<>();
            meeting.together(
                    () -> {
                        for (int peer = 0; peer < places.size(); peer++) {
                            SharedTensor place = Lines.read(places.get(peer), SharedTensor.class);
                            tensors.add(peer == rank ? mine : map(job, peer, place));
                        }
                        return "";
                    });
            return tensors;
        } finally {
            if (own[0] != null) {
                own[0].close();
            }
        }
    }

    private static void copy(Tensor tensor, SharedMemory memory) {
        Tensor whole = tensor.isContiguous() ? tensor : HostTensors.copyOf(tensor);
        try (Arena brief = Arena.ofConfined()) {
            long bytes = whole.numElements() * whole.dtype().sizeBytes();
            MemorySegment.copy(whole.segment(), 0, memory.map(0, bytes, brief), 0, bytes);
        }
    }

    private Tensor map(JobMemory job, int peer, SharedTensor place) {
        if (place.equals(SharedTensor.NONE)) {
            return null;
        }
        if (place.numBytes() == 0) {
            return Tensor.allocate(arena, place.dtype(), place.dimensions());
        }
        try (SharedMemory memory = job.open(peer, place.offer(), place.numBytes())) {
            return Tensor.of(
                    memory.map(0, place.numBytes(), arena).asReadOnly(),
                    place.dtype(),
                    place.dimensions());
        }
    }

    /** Gives up what was gathered. */
    void release() {
        arena.close();
        arena = Arena.ofShared();
    }
}
