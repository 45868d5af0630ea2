package io.deepep.bench.run;

import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.spi.Meeting;
import io.deepep.testkit.HostTensors;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

/**
 * Shows the processes of one host each other's host tensors: each writes its own to a file in
 * memory, which the others map.
 */
final class TensorExchange {
    private static final Path FOLDER = Path.of("/dev/shm");
    private static final long PIECE_BYTES = 1L << 30;

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
                        "give "
                                + FOLDER
                                + " more room (docker run --shm-size), or lower --num-tokens");
    }

    /** Where a tensor lies; no path for a rank that has none. */
    private record Place(String path, DType dtype, List<Long> shape) {
        static Place of(String path, Tensor tensor) {
            return new Place(path, tensor.dtype(), LongStream.of(tensor.shape()).boxed().toList());
        }

        String encode() {
            return path
                    + " "
                    + dtype
                    + " "
                    + shape.stream().map(String::valueOf).collect(Collectors.joining("x"));
        }

        static Place decode(String text) {
            String[] words = text.split(" ", 3);
            List<Long> shape =
                    words[2].isEmpty()
                            ? List.of()
                            : Arrays.stream(words[2].split("x", -1)).map(Long::valueOf).toList();
            return new Place(words[0], DType.valueOf(words[1]), shape);
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
        Place[] own = new Place[1];
        try {
            List<String> places =
                    meeting.together(
                            () -> {
                                own[0] = write(mine);
                                return own[0].encode();
                            });
            List<Tensor> tensors = new ArrayList<>();
            meeting.together(
                    () -> {
                        for (int peer = 0; peer < places.size(); peer++) {
                            tensors.add(peer == rank ? mine : map(Place.decode(places.get(peer))));
                        }
                        return "";
                    });
            return tensors;
        } finally {
            if (own[0] != null) {
                delete(own[0].path());
            }
        }
    }

    private static Place write(Tensor tensor) {
        if (tensor == null) {
            return new Place("", DType.BF16, List.of());
        }
        Tensor whole = tensor.isContiguous() ? tensor : HostTensors.copyOf(tensor);
        try {
            Path file = Files.createTempFile(FOLDER, "deepep-bench-", null);
            Place place = Place.of(file.toString(), whole);
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
                long bytes = place.numBytes();
                for (long at = 0; at < bytes; at += PIECE_BYTES) {
                    long length = Math.min(PIECE_BYTES, bytes - at);
                    ByteBuffer piece = whole.segment().asSlice(at, length).asByteBuffer();
                    while (piece.hasRemaining()) {
                        channel.write(piece);
                    }
                }
            } catch (IOException full) {
                Files.delete(file);
                throw full;
            }
            return place;
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private Tensor map(Place place) {
        if (place.path().isEmpty()) {
            return null;
        }
        if (place.numBytes() == 0) {
            return Tensor.allocate(arena, place.dtype(), place.dimensions());
        }
        try (FileChannel channel =
                FileChannel.open(Path.of(place.path()), StandardOpenOption.READ)) {
            return Tensor.of(
                    channel.map(MapMode.READ_ONLY, 0, place.numBytes(), arena),
                    place.dtype(),
                    place.dimensions());
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private static void delete(String path) {
        if (!path.isEmpty()) {
            try {
                Files.deleteIfExists(Path.of(path));
            } catch (IOException failure) {
                throw new UncheckedIOException(failure);
            }
        }
    }

    /** Gives up what was gathered. */
    void release() {
        arena.close();
        arena = Arena.ofShared();
    }
}
